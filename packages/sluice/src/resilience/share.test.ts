import { describe, expect, it } from 'vitest'
import { fixedWindow } from '../algorithms/fixed-window.ts'
import { leakyBucket } from '../algorithms/leaky-bucket.ts'
import { slidingWindowCounter } from '../algorithms/sliding-window-counter.ts'
import { slidingWindowLog } from '../algorithms/sliding-window-log.ts'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import { unlimited } from '../algorithms/unlimited.ts'
import { createLimiter } from '../limiter.ts'
import type { Rule } from '../rule.ts'
import { manualClock } from '../testing/manual-clock.ts'
import { shareOf } from './share.ts'

/** Units admitted of one key that asks all the time, in so many milliseconds. */
function admitted(rule: Rule, ms: number): number {
  const clock = manualClock()
  const limiter = createLimiter(rule, { clock })
  let units = 0
  for (let at = 0; at < ms; at += 5) {
    while (limiter.check('alice').allowed) units += 1
    clock.advance(5)
  }
  return units
}

describe('shareOf', () => {
  it('divides the capacity, and the rate exactly', () => {
    const share = shareOf(tokenBucket({ limit: 100, per: '1m', burst: 20 }), 3)
    expect(share).toMatchObject({ capacity: 6, gapUs: 1_800_000, gapRest: 0 })
    // A third of 7 per second is a unit every 428,571 and 3/7 microseconds.
    const odd = shareOf(tokenBucket({ limit: 7, per: '1s' }), 3)
    expect(odd).toMatchObject({ capacity: 2, gapUs: 428_571, gapRest: 3, gapParts: 7 })
  })

  it('leaves at least one unit', () => {
    const share = shareOf(tokenBucket({ limit: 2, per: '1s' }), 10)
    expect(share).toMatchObject({ capacity: 1, gapUs: 5_000_000 })
    expect(shareOf(fixedWindow({ limit: 2, per: '1s' }), 10)).toMatchObject({
      limit: 1,
      perUs: 5_000_000,
    })
  })

  it('keeps a window that can be divided, and makes another one as long as its units take', () => {
    expect(shareOf(fixedWindow({ limit: 10, per: '1s' }), 5)).toMatchObject({
      limit: 2,
      perUs: 1_000_000,
    })
    expect(shareOf(fixedWindow({ limit: 10, per: '1s' }), 3)).toMatchObject({
      limit: 3,
      perUs: 900_000,
    })
  })

  it.each([
    tokenBucket({ limit: 90, per: '1s', burst: 9 }),
    fixedWindow({ limit: 100, per: '1s' }),
    slidingWindowCounter({ limit: 100, per: '1s' }),
  ])('of all nodes together admits what the rule does, and hardly less: $name', (rule) => {
    const [whole, shared] = [admitted(rule, 100_000), 9 * admitted(shareOf(rule, 9), 100_000)]
    // The sliding counter rounds units up, which weighs more where there are few.
    expect(shared / whole).toBeGreaterThan(0.9)
    // One window more may have begun.
    expect(shared / whole).toBeLessThan(1.01)
  })

  it('of a log keeps its window, in which every interval counts', () => {
    const share = shareOf(slidingWindowLog({ limit: 10, per: '1s' }), 6)
    expect(share).toMatchObject({ limit: 1, perUs: 1_000_000 })
  })

  it('leaves a rule alone in a fleet of one, and one without a limit always', () => {
    const rule = leakyBucket({ limit: 5, per: '1s' })
    expect(shareOf(rule, 1)).toBe(rule)
    const none = unlimited()
    expect(shareOf(none, 5)).toBe(none)
  })

  it('of a slow rule in a large fleet is one unit in a hundred years', () => {
    const share = shareOf(tokenBucket({ limit: 1, per: '400d' }), 10_000)
    expect(share).toMatchObject({ capacity: 1, gapUs: 3_155_760_000_000_000 })
  })
})
