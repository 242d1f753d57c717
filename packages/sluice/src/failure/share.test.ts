import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixedWindow } from '../algorithms/fixed-window.ts'
import { gcra } from '../algorithms/gcra.ts'
import { leakyBucket } from '../algorithms/leaky-bucket.ts'
import { slidingWindowCounter } from '../algorithms/sliding-window-counter.ts'
import { slidingWindowLog } from '../algorithms/sliding-window-log.ts'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import { unlimited } from '../algorithms/unlimited.ts'
import { CENTURY_US } from '../core/duration.ts'
import type { Rule } from '../core/rule.ts'
import { createLimiter } from '../limiter/limiter.ts'
import { manualClock } from '../testing/manual-clock.ts'
import { seededRandom } from '../testing/random.ts'
import { shareOf } from './share.ts'

/** Returns the units that one key gets within `ms` if it requests all the time. */
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

/** The `per` of random rules. */
const PER_US = 10_000

/** The most units that a rule admits in any half-open interval of n times `per`. */
type Promised = (rule: Rule, n: number) => number

const promises: Readonly<Record<string, Promised>> = {
  'fixed-window': ({ limit }, n) => (n + 1) * limit,
  'sliding-window-counter': ({ limit }, n) => n * (2 * limit - 1),
  'sliding-window-log': ({ limit }, n) => n * limit,
  'token-bucket': ({ capacity, limit }, n) => capacity + n * limit,
  gcra: ({ capacity, limit }, n) => capacity + n * limit,
  'leaky-bucket': ({ capacity, limit }, n) => capacity + n * limit,
}

const units = fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 300 }))
const rules = fc
  .record({ limit: units, more: units, align: fc.constantFrom('request', 'clock') })
  .chain(({ limit, more, align }) => {
    const options = { limit, per: PER_US / 1_000 }
    return fc.constantFrom(
      fixedWindow({ ...options, align: align as 'request' | 'clock' }),
      slidingWindowCounter(options),
      slidingWindowLog(options),
      tokenBucket({ ...options, burst: more }),
      gcra({ ...options, burst: more }),
      leakyBucket({ ...options, queue: more - 1 }),
    )
  })

/** Returns the instants at which a key gets units, if it requests all it can at random times. */
function instantsOf(rule: Rule, seed: number): number[] {
  const clock = manualClock()
  const limiter = createLimiter(rule, { clock })
  const random = seededRandom(seed)
  const instants: number[] = []
  for (let step = 0; step < 60; step += 1) {
    // All that passes now, or a few units.
    for (let most = random.pick([1, 3, 1_000]); most > 0; most -= 1) {
      if (!limiter.check('alice').allowed) break
      instants.push(clock.nowUs())
    }
    const { retryAfterMs, resetAfterMs } = limiter.peek('alice')
    const edgeUs = rule.perUs - (clock.nowUs() % rule.perUs)
    const waits = [retryAfterMs * 1_000, resetAfterMs * 1_000, edgeUs, edgeUs - 1, rule.perUs - 1]
    clock.advance(Math.max(0, random.pick([...waits, random.below(PER_US)])) / 1_000)
  }
  return instants
}

/** Returns the most units in any half-open interval of `us`. */
function mostIn(instants: readonly number[], us: number): number {
  let first = 0
  let most = 0
  for (let i = 0; i < instants.length; i += 1) {
    while (instants[i] - instants[first] >= us) first += 1
    most = Math.max(most, i - first + 1)
  }
  return most
}

describe('the shares of a fleet', () => {
  it('together admit at most what the rule does; with more nodes than units, one unit per node', () => {
    fc.assert(
      fc.property(rules, units, fc.integer(), (rule, fleetSize, seed) => {
        const instants = instantsOf(shareOf(rule, fleetSize), seed)
        const isTooLarge = fleetSize > rule.capacity
        for (const n of [1, 2, 3, 7, 20]) {
          const admitted = fleetSize * mostIn(instants, n * PER_US)
          const promised = promises[rule.algorithm.name](rule, n)
          expect(admitted).toBeLessThanOrEqual(isTooLarge ? fleetSize + n * rule.limit : promised)
        }
      }),
      { numRuns: 2_000 },
    )
  })

  it.each([
    ['request', 2],
    ['request', 3],
    ['clock', 7],
  ] as const)(
    'of a window of 101 units cannot be used twice in it: %s, %i nodes',
    (align, nodes) => {
      const rule = fixedWindow({ limit: 101, per: PER_US / 1_000, align })
      for (let seed = 0; seed < 50; seed += 1) {
        const instants = instantsOf(shareOf(rule, nodes), seed)
        expect(nodes * mostIn(instants, PER_US)).toBeLessThanOrEqual(202)
      }
    },
  )
})

describe('shareOf', () => {
  it('divides the capacity, and the rate exactly', () => {
    const share = shareOf(tokenBucket({ limit: 100, per: '1m', burst: 20 }), 3)
    expect(share).toMatchObject({ capacity: 6, gapUs: 1_800_000, gapRest: 0 })
    // A third of 7 per second is one unit every 428,571 3/7 microseconds.
    const odd = shareOf(tokenBucket({ limit: 7, per: '1s' }), 3)
    expect(odd).toMatchObject({ capacity: 2, gapUs: 428_571, gapRest: 3, gapParts: 7 })
  })

  it('divides rates up to 10^12 exactly, among 10,000 nodes', () => {
    const large = fc.integer({ min: 1, max: 10 ** 12 })
    const per = fc.integer({ min: 1_000, max: 34_560_000_000_000 })
    const size = fc.integer({ min: 2, max: 10_000 })
    fc.assert(
      fc.property(large, large, per, size, (limit, burst, perUs, fleetSize) => {
        fc.pre(Math.max(burst, fleetSize) * (perUs / limit) < CENTURY_US * 0.9)
        const share = shareOf(tokenBucket({ limit, per: `${perUs}us`, burst }), fleetSize)
        const parts = BigInt(share.gapParts)
        const gap = BigInt(share.gapUs) * parts + BigInt(share.gapRest)
        const full = BigInt(share.fullUs) * parts + BigInt(share.fullRest)
        expect(gap * BigInt(limit)).toBe(BigInt(perUs) * BigInt(fleetSize) * parts)
        expect(full).toBe(gap * BigInt(share.capacity))
        expect(Math.max(share.gapRest, share.fullRest)).toBeLessThan(share.gapParts)
      }),
      { numRuns: 2_000 },
    )
  })

  it('leaves at least one unit', () => {
    const share = shareOf(tokenBucket({ limit: 2, per: '1s' }), 10)
    expect(share).toMatchObject({ capacity: 1, gapUs: 5_000_000 })
    expect(shareOf(fixedWindow({ limit: 2, per: '1s' }), 10)).toMatchObject({
      limit: 1,
      perUs: 5_000_000,
    })
  })

  it('keeps the length of a window, and rounds its units down', () => {
    for (const [limit, units] of [
      [10, 5],
      [11, 5],
      [101, 50],
    ]) {
      expect(shareOf(fixedWindow({ limit, per: '1s', align: 'clock' }), 2)).toMatchObject({
        limit: units,
        perUs: 1_000_000,
        params: { align: 'clock' },
      })
    }
  })

  it.each([
    tokenBucket({ limit: 90, per: '1s', burst: 9 }),
    fixedWindow({ limit: 100, per: '1s' }),
    slidingWindowCounter({ limit: 100, per: '1s' }),
  ])('of all nodes together admits nearly as much as the rule, and no more: $name', (rule) => {
    const [whole, shared] = [admitted(rule, 100_000), 9 * admitted(shareOf(rule, 9), 100_000)]
    // The sliding window counter rounds used units up, which costs more with few units.
    expect(shared / whole).toBeGreaterThan(0.9)
    // One more window may have begun.
    expect(shared / whole).toBeLessThan(1.01)
  })

  it('of a log keeps the length of its window', () => {
    const share = shareOf(slidingWindowLog({ limit: 10, per: '1s' }), 6)
    expect(share).toMatchObject({ limit: 1, perUs: 1_000_000 })
  })

  it('is the rule itself in a fleet of one, and for unlimited()', () => {
    const rule = leakyBucket({ limit: 5, per: '1s' })
    expect(shareOf(rule, 1)).toBe(rule)
    const none = unlimited()
    expect(shareOf(none, 5)).toBe(none)
  })

  it('of a slow rule in a large fleet is one unit per hundred years', () => {
    const share = shareOf(tokenBucket({ limit: 1, per: '400d' }), 10_000)
    expect(share).toMatchObject({ capacity: 1, gapUs: 3_155_760_000_000_000 })
  })
})
