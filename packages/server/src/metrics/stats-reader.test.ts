import { Registry } from 'prom-client'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createStatsReader } from './stats-reader.ts'

/** A reader, and a scrape: keys, evictions, errors. */
function make() {
  const registry = new Registry()
  const reader = createStatsReader(registry)
  const scrape = async () => {
    await reader.refresh()
    const text = await registry.metrics()
    return ['sluice_keys', 'sluice_evictions', 'sluice_stats_errors_total'].map((name) =>
      Number(new RegExp(`^${name} (.+)$`, 'm').exec(text)?.[1]),
    )
  }
  return { observe: reader.observe, scrape }
}

describe('createStatsReader', () => {
  afterEach(() => void vi.useRealTimers())

  it('shows nothing where there is nothing to read', async () => {
    const registry = new Registry()
    await createStatsReader(registry).refresh()
    expect(await registry.metrics()).not.toContain('sluice')
  })

  it('reads at each scrape, with the last reader', async () => {
    const { observe, scrape } = make()
    let keys = 0
    observe(() => ({ keys: ++keys, evictions: 7 }))
    expect(await scrape()).toEqual([1, 7, 0])
    expect(await scrape()).toEqual([2, 7, 0])
    observe(async () => ({ keys: 40, evictions: 8 }))
    expect(await scrape()).toEqual([40, 8, 0])
  })

  it.each([
    [
      'throws',
      () => {
        throw new Error('down')
      },
    ],
    ['rejects', () => Promise.reject(new Error('down'))],
    ['gives no numbers', () => ({ keys: 1, evictions: 'many' }) as never],
    ['gives nothing', () => undefined as never],
  ])('survives a reader that %s, and recovers', async (_, broken) => {
    const { observe, scrape } = make()
    observe(() => ({ keys: 5, evictions: 5 }))
    expect(await scrape()).toEqual([5, 5, 0])
    observe(broken)
    expect(await scrape()).toEqual([NaN, NaN, 1])
    observe(() => ({ keys: 6, evictions: 5 }))
    expect(await scrape()).toEqual([6, 5, 1])
  })

  it('gives up after a second on a reader that hangs', async () => {
    const { observe, scrape } = make()
    observe(() => new Promise(() => {}))
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const scraped = scrape()
    await vi.advanceTimersByTimeAsync(999)
    expect(vi.getTimerCount()).toBe(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(await scraped).toEqual([NaN, NaN, 1])
    expect(vi.getTimerCount()).toBe(0)
  })
})
