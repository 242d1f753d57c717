import { describe, expect, it } from 'vitest'
import { readRule } from '../core/read-rule.ts'
import {
  choiceParam,
  createLimiter,
  createPolicy,
  defineAlgorithm,
  defineRule,
  fixedWindow,
  gcra,
  memoryStore,
  type Rule,
  type RuleOptions,
  ruleFactory,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
  wholeParam,
} from '../index.ts'
import { manualClock } from '../testing/index.ts'
import { rotationRules } from '../testing/rotation-rules.ts'

const DAY_MS = 86_400_000

/** One rule per algorithm, and a fixed window that opens at a request. */
const all: Rule[] = [...rotationRules, fixedWindow({ limit: 3, per: '1s', name: 'unaligned' })]

describe.each(all.map((rule) => [rule.name, rule] as const))('%s', (_, rule) => {
  it('adds no units when the clock stands still or steps back', () => {
    let nowUs = 1_767_225_600_123_456
    const store = memoryStore({ clock: { nowUs: () => nowUs, sleep: async () => {} } })
    const limiter = createLimiter(rule, { store })
    limiter.charge('a', rule.capacity)
    for (const back of [0, 1, 1_000, 10_000_000, nowUs]) {
      nowUs -= back
      expect(limiter.check('a').allowed).toBe(false)
    }
  })

  it('adds no units when nowUs steps back in direct calls of the algorithm', () => {
    // Stores never let time decrease; Redis scripts call the arithmetic with the server's raw time.
    const cells = new Float64Array(rule.algorithm.grows ? 3 : 4)
    const state = rule.algorithm.grow(cells, rule, 0)
    const nowUs = 1_767_225_600_123_456
    rule.algorithm.spend(state, 0, rule, rule.capacity, nowUs)
    for (const back of [1, 1_000, 500_000, 1_000_000, 10_000_000]) {
      expect(rule.algorithm.waitUs(state, 0, rule, 1, nowUs - back)).toBeGreaterThan(0)
      expect(rule.algorithm.remaining(state, 0, rule, nowUs - back)).toBe(0)
    }
  })

  it('admits a refused request at the instant its wait ends, not a microsecond before', () => {
    const clock = manualClock(1_767_225_600_333_333)
    const limiter = createLimiter(rule, { clock })
    let early = 0
    let late = 0
    for (let i = 0; i < 2_000; i += 1) {
      const cost = (i % 3) + 1
      const { allowed, retryAfterMs } = limiter.check('a', cost)
      if (allowed) continue
      clock.advance(retryAfterMs - 0.001)
      if (limiter.peek('a', cost).allowed) early += 1
      clock.advance(0.001)
      if (!limiter.peek('a', cost).allowed) late += 1
    }
    expect([early, late]).toEqual([0, 0])
  })
})

describe('a bucket', () => {
  it.each([
    [1, 2_000],
    [7, 1_000],
    [3, 10],
    [997, 60_000],
  ])(
    'of %i per %i ms admits exactly that rate over a simulated year of constant requests',
    (limit, per) => {
      const clock = manualClock()
      const rule = tokenBucket({ limit, per, burst: 1 })
      const limiter = createLimiter(rule, { clock })
      limiter.check('a')
      // Jump from admission to admission for a while, then across most of the year, and again.
      let admitted = 0
      const startUs = clock.nowUs()
      const hammer = () => {
        for (let i = 0; i < 20_000; i += 1) {
          const { allowed, retryAfterMs } = limiter.check('a')
          if (allowed) admitted += 1
          else clock.advance(retryAfterMs)
        }
      }
      hammer()
      // Admissions happen at whole microseconds, so each one loses at most a microsecond.
      const elapsedUs = clock.nowUs() - startUs
      const ideal = Math.floor((elapsedUs * limit) / (per * 1_000))
      expect(admitted).toBeLessThanOrEqual(ideal)
      expect(admitted).toBeGreaterThanOrEqual(
        Math.floor(((elapsedUs - admitted) * limit) / (per * 1_000)) - 1,
      )
    },
  )

  it.each([tokenBucket, gcra])(
    'of %o never drifts: a year of full bursts ends where it began',
    (bucket) => {
      const clock = manualClock()
      const limiter = createLimiter(bucket({ limit: 7, per: '1s', burst: 7 }), { clock })
      // Seven gaps of a seventh of a second are one second, exactly, however often.
      limiter.charge('a', 7)
      for (let second = 0; second < 100_000; second += 1) {
        limiter.charge('a', 7)
        clock.advance(1_000)
      }
      expect(limiter.peek('a').resetAfterMs).toBe(1_000)
      clock.advance(365 * DAY_MS)
      expect(limiter.check('a', 7)).toMatchObject({
        allowed: true,
        remaining: 0,
        resetAfterMs: 1_000,
      })
    },
  )

  it('admits every full burst, for all limits from 1 to 100 per second', () => {
    const cut: number[] = []
    for (let limit = 1; limit <= 100; limit += 1) {
      const limiter = createLimiter(gcra({ limit, per: '1s' }), { clock: manualClock() })
      let admitted = 0
      while (limiter.allow('a')) admitted += 1
      if (admitted !== limit) cut.push(limit)
    }
    expect(cut).toEqual([])
  })
})

describe('a debt', () => {
  it('is capped at a hundred years, to the fraction of a microsecond', () => {
    const rule = gcra({ limit: 7, per: '1s' })
    const [nowUs, centuryUs] = [1_767_225_600_000_000, 36_525 * DAY_MS * 1_000]
    // One unit before the cap; the next one passes it by a seventh of a microsecond.
    const cells = Float64Array.of(nowUs + centuryUs - rule.gapUs, 0)
    rule.algorithm.spend(cells, 0, rule, 1, nowUs)
    expect(rule.algorithm.freshAtUs(cells, 0, rule) - nowUs).toBe(centuryUs)
  })
})

describe('the sliding windows', () => {
  it('keep their limits in every interval of random traffic', () => {
    const clock = manualClock(1_767_225_600_777_777)
    const log = createLimiter(slidingWindowLog({ limit: 10, per: '1s' }), { clock })
    const counter = createLimiter(slidingWindowCounter({ limit: 10, per: '1s' }), { clock })
    const admitted: { log: number[]; counter: number[] } = { log: [], counter: [] }
    for (let i = 0; i < 20_000; i += 1) {
      clock.advance(((i * 7_919) % 61) + (i % 400 === 0 ? 900 : 0))
      const burst = i % 11 === 0 ? 10 : 1
      for (let n = 0; n < burst; n += 1) {
        if (log.allow('a')) admitted.log.push(clock.nowUs())
        if (counter.allow('a')) admitted.counter.push(clock.nowUs())
      }
    }
    expect(busiest(admitted.log, 1_000_000)).toBe(10)
    expect(busiest(admitted.counter, 1_000_000)).toBeLessThanOrEqual(19)
  })
})

/** Returns the most instants within any half-open interval of `lengthUs`. */
function busiest(instants: readonly number[], lengthUs: number): number {
  let most = 0
  let from = 0
  for (let to = 0; to < instants.length; to += 1) {
    while (instants[to] - instants[from] >= lengthUs) from += 1
    most = Math.max(most, to - from + 1)
  }
  return most
}

describe('a user-defined algorithm', () => {
  it('must be complete', () => {
    const bad = expect.objectContaining({ code: 'SLUICE_OPTION' })
    expect(() => defineAlgorithm({} as never)).toThrow(bad)
    expect(() => defineAlgorithm({ name: 'half', cells: () => 1 } as never)).toThrow(bad)
    const { algorithm } = tokenBucket({ limit: 1, per: '1s' })
    expect(() => defineAlgorithm({ ...algorithm, refnd() {} } as never)).toThrow(bad)
    expect(() => defineRule({ limit: 1, per: '1s' } as never, {} as never)).toThrow(bad)
    for (const capacity of [Number.NaN, -3, 0, 1.5]) {
      const own = defineAlgorithm({ ...algorithm, capacity: () => capacity })
      expect(() => defineRule(own, { limit: 1, per: '1s' })).toThrow(bad)
    }
  })
})

describe('the parameters of a user-defined algorithm', () => {
  const base = tokenBucket({ limit: 1, per: '1s' }).algorithm
  const own = defineAlgorithm({
    ...base,
    name: 'own',
    params: { extra: wholeParam({ fallback: 0 }), pace: choiceParam(['slow', 'fast']) },
    periods: { minute: 60_000_000, hour: 3_600_000_000 },
    capacity: (limit, { extra }) => limit + Number(extra),
  })
  const make = ruleFactory<
    Omit<RuleOptions, 'per'> & { per: 'minute' | 'hour'; extra?: number; pace?: string }
  >(own)

  it('are complete in each rule, and part of its text', () => {
    const rule = make({ limit: 5, per: 'minute', extra: 2 })
    expect(rule).toMatchObject({ limit: 5, perUs: 60_000_000, capacity: 7 })
    expect(rule.params).toEqual({ per: 'minute', extra: 2, pace: 'slow' })
    expect(rule.text).toBe('5/minute extra 2 own')
    expect(readRule(rule.text, [own])).toEqual(rule)
    expect(make.algorithm).toBe(own)
  })

  it('tell rules apart, and carry over what was used', () => {
    const policy = createPolicy({
      tiers: {
        plain: make({ limit: 5, per: 'minute' }),
        extra: make({ limit: 5, per: 'minute', extra: 2 }),
      },
      defaultTier: 'plain',
    })
    const limiter = createLimiter(policy, { clock: manualClock() })
    expect(limiter.check('a', 4).remaining).toBe(1)
    expect(limiter.peek('a', 0, { tier: 'extra' }).remaining).toBe(3)
  })

  it.each([
    [{ limit: 5, per: '1m' }, 'SLUICE_DURATION', /per must be 'minute' or 'hour', got .1m./],
    [{ limit: 5, per: 'toString' }, 'SLUICE_DURATION', /must be 'minute' or 'hour'/],
    [{ limit: 5, per: 'hour', extra: -1 }, 'SLUICE_OPTION', /extra must be a whole number/],
    [{ limit: 5, per: 'hour', pace: 'fst' }, 'SLUICE_OPTION', /pace must be 'slow' or 'fast'/],
    [{ limit: 5, per: 'hour', burst: 1 }, 'SLUICE_OPTION', /there is no option .burst./],
  ])('are checked: %j', (options, code, message) => {
    expect(() => make(options as never)).toThrow(
      expect.objectContaining({ code, message: expect.stringMatching(message) }),
    )
  })
})

describe('the floor of a full store', () => {
  it('admits evicted keys at the announced instant, also in windows that open at a request', () => {
    const clock = manualClock()
    const store = memoryStore({ clock, maxKeys: 1 })
    const limiter = createLimiter(fixedWindow({ limit: 1, per: '10s' }), { store })
    limiter.check('a')
    limiter.charge('b', 1)
    clock.advance(9_000)
    expect(limiter.peek('a').retryAfterMs).toBe(1_000)
    clock.advance(999.999)
    expect(limiter.peek('a').allowed).toBe(false)
    clock.advance(0.001)
    expect(limiter.peek('a').allowed).toBe(true)
  })

  it('drops log entries once they expire', () => {
    const clock = manualClock()
    const store = memoryStore({ clock, maxKeys: 1 })
    const limiter = createLimiter(slidingWindowLog({ limit: 10, per: '10s' }), { store })
    limiter.check('a', 9)
    clock.advance(9_900)
    limiter.check('a', 1)
    clock.advance(600)
    limiter.charge('b', 1)
    expect(limiter.peek('a').remaining).toBe(9)
  })
})
