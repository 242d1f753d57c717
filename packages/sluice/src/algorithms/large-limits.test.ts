import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RECENT } from '../core/algorithm.ts'
import { CENTURY_US } from '../core/duration.ts'
import { MOST_COUNT } from '../core/exact.ts'
import type { Rule } from '../core/rule.ts'
import {
  createLimiter,
  fixedWindow,
  leakyBucket,
  parseRule,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from '../index.ts'
import { manualClock } from '../testing/manual-clock.ts'
import { createMeter, type Meter } from '../testing/meters.ts'

const START_US = 1_767_225_600_123_456
const LARGEST = 1_000_000_000_000

/** Limits that share no factor with their periods, and arbitrary ones. */
const limit = fc.oneof(
  fc.constantFrom(999_999_999_989, 999_999_999_961, 50_000_000, 125_000_000, LARGEST, 1, 7),
  fc.integer({ min: 1, max: LARGEST }),
  fc.integer({ min: 1, max: 1_000_000 }),
)
const per = fc.oneof(
  fc.constantFrom('86399999ms', '1d', '1s', '1000003us', '400d', '1ms'),
  fc.integer({ min: 1_000, max: 34_560_000_000_000 }).map((us) => `${us}us` as const),
)
const units = fc.oneof(limit, fc.nat(5), fc.integer({ min: 0, max: LARGEST }))

const bucket = fc
  .record({ limit, per, most: fc.option(units), leaks: fc.boolean() })
  .map(({ limit, per, most, leaks }) => {
    try {
      if (leaks) return leakyBucket({ limit, per, queue: most ?? limit })
      return tokenBucket({ limit, per, burst: Math.max(1, most ?? limit) })
    } catch {
      return undefined
    }
  })
  .filter((rule) => rule !== undefined)

const step = fc.record({
  verb: fc.constantFrom('take', 'take', 'take', 'charge', 'refund', 'refund', 'carry'),
  cost: units,
  /** How far time advances, in units of the rule. */
  gaps: units,
  off: fc.integer({ min: -1, max: 1 }),
  which: fc.nat(3),
})

/** Creates the state of one key twice: by the algorithm and by the reference model. */
function createPair(rule: Rule) {
  const cells = new Float64Array(2)
  const meter = createMeter(rule)
  return { rule, cells, meter, spends: [] as { cost: number; atUs: number }[] }
}

type Pair = ReturnType<typeof createPair>

function act(pair: Pair, { verb, cost, which }: Step, other: Rule, nowUs: number): void {
  const { rule, cells, meter, spends } = pair
  const { algorithm } = rule
  if (verb === 'take') {
    const units = Math.min(cost, rule.capacity)
    if (algorithm.take(cells, 0, rule, units, nowUs) > 0 || units === 0) return
    meter.spend(units, nowUs)
    spends.push({ cost: units, atUs: nowUs })
  } else if (verb === 'charge' && cost > 0) {
    algorithm.spend(cells, 0, rule, cost, nowUs)
    meter.spend(cost, nowUs)
  } else if (verb === 'refund') {
    // Either the latest spend, or one that is named by its instant.
    const spend = which === 0 ? undefined : spends.splice(which - 1, 1)[0]
    const back = spend ? Math.min(spend.cost, cost) : cost
    algorithm.refund(cells, 0, rule, back, nowUs, spend?.atUs ?? RECENT)
    meter.refund(back, nowUs, spend?.atUs)
  } else if (verb === 'carry' && other.algorithm === rule.algorithm) {
    algorithm.carry(cells, 0, rule, other, nowUs)
    meter.carry(other, nowUs)
    pair.rule = other
  }
}

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** Describes where the algorithm's answers about a key differ from the model's; '' if nowhere. */
function complaint({ rule, cells, meter }: Pair, given: number, nowUs: number): string {
  const { algorithm } = rule
  const cost = Math.min(given, rule.capacity)
  const left = algorithm.remaining(cells, 0, rule, nowUs)
  const isMost = left === rule.capacity || !meter.passes(left + 1, nowUs)
  if (!isMost || (left > 0 && !meter.passes(left, nowUs))) return `${left} left`
  const waitUs = algorithm.waitUs(cells, 0, rule, cost, nowUs)
  if (!isFirst(waitUs, (us) => meter.passes(cost, nowUs + us))) return `waits ${waitUs}`
  const freshUs = algorithm.freshAtUs(cells, 0, rule) - nowUs
  const resetUs = Math.max(0, freshUs)
  if (!isFirst(resetUs, (us) => meter.isFresh(nowUs + us))) return `fresh in ${freshUs}`
  const lineUs = algorithm.lineUs(rule, waitUs, resetUs, left, given, cost)
  return isLine(rule, meter, lineUs, given, cost, nowUs) ? '' : `a line of ${lineUs}`
}

/** Tells whether a condition holds after `us` microseconds, and not one before. */
function isFirst(us: number, holds: (us: number) => boolean): boolean {
  return holds(us) && (us === 0 || !holds(us - 1))
}

/** Tells whether `lineUs` is not too long, and at most two microseconds too short. */
function isLine(
  rule: Rule,
  meter: Meter,
  lineUs: number,
  ahead: number,
  cost: number,
  nowUs: number,
): boolean {
  // The model caps debt at a hundred years, too.
  if (lineUs + rule.fullUs > CENTURY_US - 10) return true
  const copy = meter.copy()
  if (ahead > 0) copy.spend(ahead, nowUs)
  const holds = (us: number) =>
    rule.algorithm.delays ? copy.isFresh(nowUs + us) : copy.passes(cost, nowUs + us)
  return holds(lineUs + 2) && (lineUs === 0 || !holds(lineUs - 1))
}

describe('a bucket of any rate up to 10^12', () => {
  it('equals the model with debt, refunds, changed limits and wait queues', () => {
    fc.assert(
      fc.property(bucket, bucket, fc.array(step, { maxLength: 30 }), (rule, other, steps) => {
        const pair = createPair(rule)
        const rules = [rule, other]
        let nowUs = START_US
        for (const each of steps) {
          const next = rules[each.which % 2]
          const gapsUs = Math.floor((each.gaps / next.limit) * next.perUs) + each.off
          if (gapsUs > 0 && gapsUs < CENTURY_US / 100) nowUs += gapsUs
          act(pair, each, next, nowUs)
          const wrong = complaint(pair, each.cost, nowUs)
          if (wrong !== '') throw new Error(`${pair.rule.text} at ${nowUs}: ${wrong}`)
        }
      }),
      { numRuns: 5_000 },
    )
  })

  it.each([
    [6_241_749_752, 17_322_405_275_399, 883_263_514_336, 2_451_275_550_641_682],
    [178_715_613_739, 9_063_899_832_572, 571_200_011_190, 28_969_487_206_367],
  ])(
    'of %i per %i µs refills %i units in line within %i µs, not later',
    (limit, perUs, ahead, lineUs) => {
      // Plain double arithmetic would round the product up to the next microsecond.
      const rule = leakyBucket({ limit, per: `${perUs}us`, queue: 1 })
      expect(rule.algorithm.lineUs(rule, 0, 1, 0, ahead, 1)).toBe(lineUs)
    },
  )

  it('merges to the stricter of two states', () => {
    fc.assert(
      fc.property(bucket, units, units, units, (rule, one, other, later) => {
        const states = [one, other].map((cost, i) => {
          const cells = new Float64Array(2)
          rule.algorithm.spend(cells, 0, rule, cost + 1, START_US + i * (later % 1_000_000))
          return cells
        })
        const nowUs = START_US + (later % 1_000_000)
        const left = states.map((cells) => rule.algorithm.remaining(cells, 0, rule, nowUs))
        rule.algorithm.merge(states[0], 0, states[1], 0, rule, nowUs)
        return rule.algorithm.remaining(states[0], 0, rule, nowUs) === Math.min(...left)
      }),
    )
  })

  it('computes its gap and the refill time of its capacity exactly', () => {
    fc.assert(
      fc.property(bucket, ({ limit, perUs, capacity, ...rule }) => {
        const [parts, whole] = [BigInt(rule.gapParts), BigInt(perUs) * BigInt(rule.gapParts)]
        const gap = BigInt(rule.gapUs) * parts + BigInt(rule.gapRest)
        const full = BigInt(rule.fullUs) * parts + BigInt(rule.fullRest)
        const isReduced = rule.gapRest < rule.gapParts && rule.fullRest < rule.gapParts
        return isReduced && gap * BigInt(limit) === whole && full === gap * BigInt(capacity)
      }),
    )
  })

  it('admits exactly its rate over 400 days of full bursts', () => {
    const clock = manualClock()
    const rule = parseRule('999999999989/86399999ms')
    const limiter = createLimiter(rule, { clock })
    for (let period = 0; period < 400; period += 1) {
      expect(limiter.check('a', 999_999_999_989)).toMatchObject({ allowed: true, remaining: 0 })
      expect(limiter.peek('a', 999_999_999_989).retryAfterMs).toBe(86_399_999)
      clock.advance(86_399_999)
    }
  })
})

describe('debt', () => {
  it.each([
    fixedWindow({ limit: LARGEST, per: '1d' }),
    slidingWindowCounter({ limit: LARGEST, per: '1d' }),
    slidingWindowLog({ limit: 10_000, per: '1d' }),
  ])('of $name grows to a thousand times the largest limit, and stays exact', (rule) => {
    const clock = manualClock(START_US)
    const limiter = createLimiter(rule, { clock })
    for (let i = 0; i < 1_000; i += 1) limiter.charge('a', LARGEST)
    // Refunds undo the charges to the unit.
    for (let i = 0; i < 999; i += 1) limiter.refund('a', LARGEST)
    expect(limiter.peek('a').remaining).toBe(Math.max(0, rule.limit - LARGEST))
    limiter.refund('a', LARGEST - 1)
    expect(limiter.peek('a').remaining).toBe(rule.limit - 1)
  })

  it('of a log is capped there', () => {
    const rule = slidingWindowLog({ limit: 10_000, per: '1s' })
    const limiter = createLimiter(rule, { clock: manualClock(START_US) })
    for (let i = 0; i < 2_000; i += 1) limiter.charge('a', LARGEST)
    for (let i = 0; i < 1_125; i += 1) limiter.refund('a', LARGEST)
    limiter.refund('a', MOST_COUNT - 1_125 * LARGEST - 3)
    expect(limiter.peek('a').remaining).toBe(9_997)
  })

  it('of the previous window counts until the end of the current one', () => {
    const clock = manualClock(0)
    const rule = slidingWindowCounter({ limit: 1, per: '1d' })
    const limiter = createLimiter(rule, { clock })
    for (let i = 0; i < 1_000; i += 1) limiter.charge('a', LARGEST)
    clock.advance(2 * 86_400_000 - 0.001)
    expect(limiter.peek('a')).toMatchObject({ remaining: 0, retryAfterMs: 0.001 })
    clock.advance(0.001)
    expect(limiter.peek('a').remaining).toBe(1)
  })
})
