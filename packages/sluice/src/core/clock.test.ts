import { describe, expect, it, vi } from 'vitest'
import { createLimiter, memoryStore, tokenBucket } from '../index.ts'
import { manualClock } from '../testing/index.ts'
import { steadyClock, systemClock } from './clock.ts'

describe('systemClock', () => {
  it('returns whole microseconds near the wall clock that never decrease', () => {
    const readings = Array.from({ length: 10_000 }, () => systemClock.nowUs())
    expect(readings.every(Number.isSafeInteger)).toBe(true)
    expect(readings.every((us, i) => i === 0 || us >= readings[i - 1])).toBe(true)
    expect(Math.abs(readings[0] / 1_000 - Date.now())).toBeLessThan(60_000)
  })

  it('follows performance.now(), which all threads share, to two microseconds', () => {
    const originUs = performance.timeOrigin * 1_000
    const off = Array.from({ length: 1_000 }, () => {
      const beforeUs = originUs + performance.now() * 1_000
      const us = systemClock.nowUs()
      const afterUs = originUs + performance.now() * 1_000
      return Math.max(beforeUs - us, us - afterUs)
    })
    expect(Math.max(...off)).toBeLessThan(2)
  })

  it('splits a sleep of over 24 days, which would overflow a timer', async () => {
    const timeouts: number[] = []
    const spy = vi.spyOn(globalThis, 'setTimeout').mockImplementation(((_: unknown, ms: number) => {
      timeouts.push(ms)
      return 0
    }) as never)
    const abort = new AbortController()
    const sleep = systemClock.sleep(30 * 86_400_000, abort.signal)
    abort.abort(new Error('enough'))
    await expect(sleep).rejects.toThrow('enough')
    spy.mockRestore()
    expect(timeouts).toEqual([2 ** 31 - 1])
  })

  it('rejects a sleep whose signal is aborted already', async () => {
    await expect(systemClock.sleep(1, AbortSignal.abort(new Error('no')))).rejects.toThrow('no')
  })
})

describe('steadyClock', () => {
  it('stands still when the clock steps back or fails', () => {
    const readings = [5, 7, 3, Number.NaN, 8]
    const now = steadyClock({ nowUs: () => readings.shift()!, sleep: async () => {} })
    expect([now(), now(), now(), now()]).toEqual([7, 7, 7, 8])
  })

  it.each([1.5, -1, Number.NaN, '5', undefined])('refuses a clock that returns %o', (reading) => {
    const clock = { nowUs: () => reading as number, sleep: async () => {} }
    expect(() => memoryStore({ clock })).toThrow(expect.objectContaining({ code: 'SLUICE_CLOCK' }))
  })
})

describe('manualClock', () => {
  it('wakes sleepers in the order in which they are due', async () => {
    const clock = manualClock()
    const woken: string[] = []
    void clock.sleep(20).then(() => woken.push('late'))
    void clock.sleep(10).then(() => woken.push('early'))
    void clock.sleep(30).then(() => woken.push('never'))
    clock.advance(20)
    await Promise.resolve()
    expect(woken).toEqual(['early', 'late'])
  })

  it('advances by milliseconds, or by a duration', () => {
    const clock = manualClock(0)
    clock.advance(1.5)
    clock.advance('1m')
    expect(clock.nowUs()).toBe(60_001_500)
  })

  it('refuses to go backwards, and invalid durations', () => {
    for (const wrong of [-1, Number.NaN, '1 minute', null]) {
      expect(() => manualClock().advance(wrong as never)).toThrow(
        expect.objectContaining({ code: 'SLUICE_DURATION' }),
      )
    }
  })

  it('starts at whole microseconds, and detects milliseconds', () => {
    expect(() => manualClock(0.5)).toThrow(expect.objectContaining({ code: 'SLUICE_CLOCK' }))
    expect(() => manualClock(Date.now())).toThrow(
      /whole microseconds since 1970, got \d+\. These look like milliseconds: pass Date\.now\(\) \* 1_000/,
    )
    expect(manualClock(Date.UTC(2026, 0) * 1_000).nowUs()).toBe(manualClock().nowUs())
    expect(manualClock(0).nowUs()).toBe(0)
  })

  it('drives a rule to the microsecond', () => {
    const clock = manualClock()
    const limiter = createLimiter(tokenBucket({ limit: 1, per: '1s' }), { clock })
    expect(limiter.allow('a')).toBe(true)
    clock.advance(999.999)
    expect(limiter.allow('a')).toBe(false)
    clock.advance(0.001)
    expect(limiter.allow('a')).toBe(true)
  })
})
