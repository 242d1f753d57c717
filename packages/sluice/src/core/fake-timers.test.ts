import { mock } from 'node:test'
import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  calendarWindow,
  createLimiter,
  fixedWindow,
  memoryStore,
  systemClock,
  tokenBucket,
} from '../index.ts'
import { createSystemTime } from './system-time.ts'

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  mock.timers.reset()
})

/** The fake timers of test runners, complete or partial. */
const fakes: readonly [name: string, install: () => void, advance: (ms: number) => void][] = [
  ['vitest', () => vi.useFakeTimers(), (ms) => vi.advanceTimersByTime(ms)],
  [
    'vitest with the fakes of vitest 2',
    () => vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'] }),
    (ms) => vi.advanceTimersByTime(ms),
  ],
  [
    'vitest without Date',
    () => vi.useFakeTimers({ toFake: ['performance', 'hrtime', 'setTimeout', 'clearTimeout'] }),
    (ms) => vi.advanceTimersByTime(ms),
  ],
  [
    'vitest with Date alone',
    () => vi.setSystemTime(Date.now()),
    (ms) => vi.setSystemTime(Date.now() + ms),
  ],
  ['node:test', () => mock.timers.enable(), (ms) => mock.timers.tick(ms)],
]

function leave(): void {
  vi.useRealTimers()
  mock.timers.reset()
}

const realMs = performance.now.bind(performance)

/** Reads `nowUs` twice, with milliseconds of real time in between, and compares it with that. */
function speedOf(nowUs: () => number): number {
  const fromMs = realMs()
  const fromUs = nowUs()
  while (realMs() - fromMs < 3);
  const us = nowUs() - fromUs
  return us / 1_000 / (realMs() - fromMs)
}

describe.each(fakes)('the fake timers of %s', (_, install, advance) => {
  it('refill a limiter that was used before they were installed', () => {
    const limiter = createLimiter(tokenBucket({ limit: 1, per: '1m' }))
    expect([limiter.allow('a'), limiter.allow('a')]).toEqual([true, false])
    install()
    expect(limiter.allow('a')).toBe(false)
    advance(58_000)
    expect(limiter.allow('a')).toBe(false)
    advance(2_000)
    expect(limiter.allow('a')).toBe(true)
  })

  it('refill a limiter whose module was loaded after they were installed', async () => {
    install()
    vi.resetModules()
    const fresh = await import('../index.ts')
    expect(fresh.createLimiter).not.toBe(createLimiter)
    const limiter = fresh.createLimiter(fresh.tokenBucket({ limit: 1, per: '1m' }))
    expect([limiter.allow('a'), limiter.allow('a')]).toEqual([true, false])
    advance(59_999)
    expect(limiter.allow('a')).toBe(false)
    advance(1)
    expect(limiter.allow('a')).toBe(true)
    leave()
    expect(limiter.allow('a')).toBe(false)
    expect(speedOf(fresh.systemClock.nowUs)).toBeCloseTo(1, 1)
  })

  it('stand still until they are advanced', () => {
    const nowUs = createSystemTime()
    install()
    const fromUs = nowUs()
    expect(speedOf(nowUs)).toBe(0)
    advance(1_234)
    expect(nowUs() - fromUs).toBe(1_234_000)
  })

  it('leave a limiter at their last instant, from which it continues at real speed', () => {
    const nowUs = createSystemTime()
    nowUs()
    for (let i = 0; i < 3; i += 1) {
      install()
      advance(86_400_000)
      const lastUs = nowUs()
      leave()
      expect(nowUs() - lastUs).toBeGreaterThanOrEqual(0)
      expect(nowUs() - lastUs).toBeLessThan(60_000_000)
      expect(speedOf(nowUs)).toBeCloseTo(1, 1)
    }
  })
})

describe('a fake date', () => {
  it('in 2030 is followed, and continues at real speed afterwards', () => {
    const limiter = createLimiter(fixedWindow({ limit: 1, per: '1h' }))
    const nowUs = createSystemTime()
    nowUs()
    expect(limiter.allow('a')).toBe(true)
    vi.useFakeTimers({ now: Date.UTC(2030, 0, 1) })
    expect(nowUs()).toBe(Date.UTC(2030, 0, 1) * 1_000)
    expect([limiter.allow('a'), limiter.allow('a')]).toEqual([true, false])
    vi.useRealTimers()
    expect(limiter.allow('a')).toBe(false)
    expect(nowUs()).toBeGreaterThanOrEqual(Date.UTC(2030, 0, 1) * 1_000)
    expect(speedOf(nowUs)).toBeCloseTo(1, 1)
    expect(Math.abs(createSystemTime()() / 1_000 - Date.now())).toBeLessThan(60_000)
  })

  it('in the past neither freezes a limiter nor refills it', () => {
    vi.useFakeTimers({ now: Date.UTC(2030, 0, 1) })
    const limiter = createLimiter(tokenBucket({ limit: 1, per: '1s' }))
    expect(limiter.allow('a')).toBe(true)
    vi.setSystemTime(Date.UTC(2020, 0, 1))
    expect(limiter.allow('a')).toBe(false)
    vi.advanceTimersByTime(999)
    expect(limiter.allow('a')).toBe(false)
    vi.advanceTimersByTime(1)
    expect(limiter.allow('a')).toBe(true)
  })

  it('sets the date of a limiter created under it', () => {
    for (const day of [Date.UTC(2030, 0, 31), Date.UTC(2026, 0, 31)]) {
      vi.useFakeTimers({ now: day + 86_400_000 - 1 })
      const limiter = createLimiter(calendarWindow({ limit: 1, per: 'month' }), {
        store: memoryStore(),
      })
      expect([limiter.allow('a'), limiter.allow('a')]).toEqual([true, false])
      vi.advanceTimersByTime(1)
      expect(limiter.allow('a')).toBe(true)
      vi.useRealTimers()
    }
  })
})

it('admits a refused request once the fake timers have advanced by retryAfterMs', () => {
  vi.useFakeTimers()
  const limiter = createLimiter(tokenBucket({ limit: 7, per: '1s', burst: 1 }))
  let early = 0
  for (let i = 0; i < 1_000; i += 1) {
    expect(limiter.allow('a')).toBe(true)
    vi.advanceTimersByTime(limiter.peek('a').retryAfterMs - 0.001)
    if (limiter.allow('a')) early += 1
    else vi.advanceTimersByTime(limiter.peek('a').retryAfterMs)
  }
  expect(early).toBe(0)
})

it('ends a wait when the fake timers have advanced', async () => {
  vi.useFakeTimers()
  const limiter = createLimiter(tokenBucket({ limit: 1, per: '1m' }))
  limiter.allow('a')
  const admitted = vi.fn()
  const wait = limiter.wait('a', 1, { maxWaitMs: 120_000 }).then(admitted)
  await vi.advanceTimersByTimeAsync(59_999)
  expect(admitted).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(1)
  expect(admitted).toHaveBeenCalledTimes(1)
  await wait
})

it('is anchored at the first reading, not when the module is loaded', async () => {
  vi.resetModules()
  const read = vi.spyOn(performance, 'now')
  const tick = vi.spyOn(process, 'hrtime')
  const fresh = await import('../index.ts')
  read.mockClear()
  tick.mockClear()
  const limiter = fresh.createLimiter(fresh.tokenBucket({ limit: 1, per: '1s' }))
  expect([read.mock.calls.length, tick.mock.calls.length]).toEqual([0, 0])
  limiter.allow('a')
  expect(tick).toHaveBeenCalled()
  expect(systemClock.nowUs).not.toBe(fresh.systemClock.nowUs)
})
