import { describe, expect, it } from 'vitest'
import { concurrency, createLimiter, throttle, tokenBucket } from '../index.ts'
import { manualClock } from '../testing/index.ts'

const turns = async () => {
  for (let i = 0; i < 10; i += 1) await new Promise((resolve) => setImmediate(resolve))
}

/** Work that ends when it is told to. */
function workshop() {
  const begun: string[] = []
  const ends = new Map<string, (error?: Error) => void>()
  const work = (name: string) => {
    begun.push(name)
    return new Promise<string>((resolve, reject) => {
      ends.set(name, (error) => (error ? reject(error) : resolve(name.toUpperCase())))
    })
  }
  return { begun, work, end: (name: string, error?: Error) => ends.get(name)?.(error) }
}

describe('throttle', () => {
  it('runs no more calls at once than a concurrency rule lets it, in order', async () => {
    const { begun, work, end } = workshop()
    const limiter = createLimiter(concurrency({ limit: 2, hold: '1m' }))
    const throttled = throttle(work, { limiter })
    const all = ['a', 'b', 'c', 'd'].map((name) => throttled(name))
    await turns()
    expect([begun, throttled.waiting()]).toEqual([['a', 'b'], 2])
    end('b')
    expect(await all[1]).toBe('B')
    await turns()
    expect([begun, throttled.waiting()]).toEqual([['a', 'b', 'c'], 1])
    end('a', new Error('failed'))
    await expect(all[0]).rejects.toThrow('failed')
    await turns()
    expect(begun).toEqual(['a', 'b', 'c', 'd'])
    for (const name of ['c', 'd']) end(name)
    await Promise.all(all.slice(2))
    await turns()
    expect(limiter.stats().held).toBe(0)
  })

  it('releases when the work throws at once', async () => {
    const limiter = createLimiter(concurrency({ limit: 1, hold: '1m' }))
    const throttled = throttle(
      () => {
        throw new Error('failed')
      },
      { limiter },
    )
    for (let i = 0; i < 3; i += 1) await expect(throttled()).rejects.toThrow('failed')
    expect(limiter.stats().held).toBe(0)
  })

  it('keeps to a rate, and takes key, cost and priority from the arguments', async () => {
    const clock = manualClock()
    const limiter = createLimiter(tokenBucket({ limit: 4, per: '4s' }), { clock })
    const begun: string[] = []
    const throttled = throttle((name: string, _cost: number) => begun.push(name), {
      limiter,
      key: (name) => name[0],
      cost: (_, cost) => cost,
      priority: (name) => name.length,
    })
    const all = [throttled('a', 4), throttled('a', 2), throttled('aa', 1), throttled('b', 4)]
    await turns()
    expect([begun, throttled.waiting('a')]).toEqual([['a', 'b'], 2])
    clock.advance(1_000)
    await turns()
    expect(begun).toEqual(['a', 'b', 'aa'])
    clock.advance(2_000)
    await Promise.all(all)
    expect(begun).toEqual(['a', 'b', 'aa', 'a'])
  })

  it('does not call the work when the wait is too long or ends', async () => {
    const { begun, work } = workshop()
    const limiter = createLimiter(tokenBucket({ limit: 1, per: '1h' }), { clock: manualClock() })
    limiter.check('default')
    const hasty = throttle(work, { limiter, maxWaitMs: 1_000 })
    await expect(hasty('a')).rejects.toMatchObject({
      code: 'SLUICE_WAIT_TOO_LONG',
      decision: { allowed: false, retryAfterMs: 3_600_000 },
    })
    const abort = new AbortController()
    const patient = throttle(work, { limiter, maxWaitMs: '2h', signal: () => abort.signal })
    const waiting = expect(patient('b')).rejects.toThrow('gone')
    await turns()
    abort.abort(new Error('gone'))
    await waiting
    expect(begun).toEqual([])
  })

  it.each([
    [5, {}, /must be a function/],
    [() => {}, {}, /limiter must come from/],
    [() => {}, { key: 5 }, /key must be a function|limiter/],
    [() => {}, { retries: 5 }, /no option/],
  ])('refuses %o with %o', (work, options, message) => {
    expect(() => throttle(work as never, options as never)).toThrow(message)
  })
})
