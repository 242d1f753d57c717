import { describe, expect, it } from 'vitest'
import type { Rule } from '../../core/rule.ts'
import {
  createLimiter,
  createPolicy,
  defineAlgorithm,
  defineRule,
  fixedWindow,
  memoryStore,
  slidingWindowCounter,
  tokenBucket,
} from '../../index.ts'
import { createFloor } from '../../rows/floor.ts'
import { createModel, manualClock, seededRandom } from '../../testing/index.ts'
import { attachSharedMemory, sharedMemoryStore } from './shared-memory.ts'

const make = (maxKeys: number) => {
  const clock = manualClock()
  return { clock, store: sharedMemoryStore({ maxKeys, clock }) }
}

const numbers = (count: number) => Array.from({ length: count }, (_, i) => i)
const listed = (rules: readonly Rule[]) => Object.fromEntries(rules.map((rule, i) => [i, rule]))
/** More slow tiers than a floor's bucket has rows, followed by other rules. */
const slowTiers = (...others: readonly Rule[]) =>
  createPolicy({
    tiers: listed([
      ...numbers(40).map((i) => tokenBucket({ limit: 20 + i, per: '30d' })),
      ...others,
    ]),
    defaultTier: '0',
  })

describe('a floor of more rules than its bucket has room for', () => {
  it('is as strict as on a memoryStore with one row, however unknown keys are charged', () => {
    const [clock, rule] = [manualClock(), tokenBucket({ limit: 20, per: '1m' })]
    const limiters = [
      memoryStore({ maxKeys: 1, clock }),
      sharedMemoryStore({ maxKeys: 1, clock }),
    ].map((store) => createLimiter(slowTiers(rule), { store }))
    for (let i = 0; i < 400; i += 1) {
      for (const limiter of limiters) limiter.charge(`key ${i}`, 1, { tier: `${i % 40}` })
    }
    const waits = limiters.map(
      (limiter) => limiter.peek('stranger', 1, { tier: '40' }).retryAfterMs,
    )
    expect(waits[1]).toBeGreaterThan(0)
    expect(waits[1]).toBeLessThanOrEqual(waits[0])
  })

  it('does not replay units one by one, even for a rule that refills one every 0.1 nanoseconds', () => {
    let spends = 0
    const { algorithm } = tokenBucket({ limit: 1, per: '1s' })
    const counting = defineAlgorithm({
      ...algorithm,
      name: 'counting',
      spend(...call) {
        spends += 1
        if (spends > 1_000) throw new Error('a floor spends units one after the other')
        algorithm.spend(...call)
      },
    })
    const tiers = numbers(40).map((i) => defineRule(counting, { limit: 20 + i, per: '30d' }))
    const fast = defineRule(counting, { limit: 10_000_000, per: 1 })
    const policy = createPolicy({ tiers: listed([...tiers, fast]), defaultTier: '0' })
    const limiter = createLimiter(policy, { store: make(1).store })
    for (let i = 0; i < 400; i += 1) limiter.charge(`key ${i}`, 20, { tier: `${i % 40}` })
    expect(spends).toBe(400)
    const { remaining } = limiter.peek('stranger', 1, { tier: '40' })
    expect(remaining).toBeLessThanOrEqual(10_000_000 - 20)
    expect(remaining).toBeGreaterThanOrEqual(10_000_000 - 400 * 20)
    expect(spends).toBe(400)
  })

  it('forgives nothing when carried to a rule with many more units', () => {
    const { store } = make(1)
    const fast = tokenBucket({ limit: 10_000_000, per: '1s' })
    const limiter = createLimiter(slowTiers(fast), { store })
    for (let i = 0; i < 400; i += 1) limiter.charge(`key ${i}`, 1, { tier: `${i % 40}` })
    limiter.charge('alice', 10_000_000, { tier: '40' })
    for (let i = 0; i < 400; i += 1) limiter.charge(`key ${i}`, 1, { tier: `${i % 40}` })
    const { retryAfterMs } = limiter.peek('alice', 1, { tier: '0' })
    expect(retryAfterMs).toBeGreaterThan(36_000 * 86_400_000)
  })

  it('is shared by all threads, and ends once all is refilled or cleared', () => {
    const { store, clock } = make(1)
    const there = attachSharedMemory(store.handle, { clock })
    const rule = tokenBucket({ limit: 20, per: '1m' })
    const [one, two] = [store, there].map((store) =>
      createLimiter(slowTiers(rule), { store, share: true }),
    )
    const charge = () => {
      for (let i = 0; i < 800; i += 1) {
        const limiter = i % 3 === 0 ? one : two
        limiter.charge(`key ${i}`, 10, { tier: `${i % 40}` })
      }
    }
    const look = () =>
      numbers(41).map((tier) =>
        [one, two].map((own) => own.peek('stranger', 1, { tier: `${tier}` })),
      )
    charge()
    for (const [here, there] of look()) {
      expect(here).toEqual(there)
      expect(here.allowed).toBe(false)
    }
    clock.advance(36_525 * 86_400_000)
    for (const both of look()) for (const { allowed } of both) expect(allowed).toBe(true)
    charge()
    one.clear()
    for (const both of look()) for (const { allowed } of both) expect(allowed).toBe(true)
  })
})

/** The number of rules that fit into a floor's own bucket. */
const FLOOR_RULES = 28

/** The floor of a store that evicts every row at once. No floor may be stricter. */
function hardest(rules: readonly Rule[]) {
  const floor = createFloor(new Float64Array(3))
  const cells = Math.max(...rules.map((rule) => rule.algorithm.cells(rule)))
  const width = { name: '', algorithm: '', grows: false, cells, at: 0 }
  return {
    /** Returns the remaining units of a rule before it adds `spent`. */
    look(rule: Rule, spent: number, nowUs: number): number {
      const state = new Float64Array(cells)
      if (floor.raised(nowUs)) floor.apply(0, width, rule, state, 0, nowUs)
      const remaining = rule.algorithm.remaining(state, 0, rule, nowUs)
      if (spent === 0) return remaining
      rule.algorithm.begin(state, 0, rule, nowUs)
      rule.algorithm.spend(state, 0, rule, spent, nowUs)
      floor.raise(0, rule, state, 0, nowUs)
      return remaining
    },
  }
}

describe('an over-full sharedMemoryStore', () => {
  const buckets = numbers(40).map((i) =>
    tokenBucket({ limit: 3 + i, per: `${1 + ((7 * i) % 11)}s` }),
  )
  const counters = numbers(40).map((i) =>
    slidingWindowCounter({ limit: 3 + i, per: `${1 + ((7 * i) % 11)}s` }),
  )
  const windows = numbers(40).map((i) =>
    fixedWindow({ limit: 3 + i, per: `${1 + ((7 * i) % 11)}s`, align: 'clock' }),
  )
  const lists = [
    [tokenBucket({ limit: 5, per: '3s' })],
    [...buckets.slice(0, 2), tokenBucket({ limit: 10_000_000, per: 1 })],
    [...buckets, tokenBucket({ limit: 10_000_000, per: 1 })],
    counters,
    windows,
  ]
  const cases = lists.flatMap((rules) =>
    [1, 4, 16].map((maxKeys) => ({ rules, maxKeys, name: rules[0].algorithm.name })),
  )

  it.each(cases)(
    'is never laxer than the rule, nor stricter than all evicted rows: $rules.length × $name, maxKeys $maxKeys',
    ({ rules, maxKeys }) => {
      const { store, clock } = make(maxKeys)
      const policy = createPolicy({ tiers: listed(rules), defaultTier: '0' })
      const limiters = [store, attachSharedMemory(store.handle, { clock })].map((store) =>
        createLimiter(policy, { store, share: true }),
      )
      const [model, hard, random] = [createModel(), hardest(rules), seededRandom(maxKeys)]
      const wrong: unknown[] = []
      const counts = { allowed: 0, refused: 0 }
      let harder = 0
      for (let step = 0; step < 2_000; step += 1) {
        clock.advance(random.pick([0, 0, 0.001, 1, 37, 250]))
        const nowUs = clock.nowUs()
        const [key, tier] = [
          `key ${random.below(random.pick([4, 64]))}`,
          random.below(rules.length),
        ]
        const [rule, cost] = [rules[tier], random.pick([1, 1, 1, 2])]
        const limiter = random.pick(limiters)
        const before = limiter.peek(key, cost, { tier: `${tier}` })
        const most = model.decide(key, [rule], cost, nowUs, false).remaining
        const decision = limiter.check(key, cost, { tier: `${tier}` })
        const { allowed } = decision
        if (allowed) model.decide(key, [rule], cost, nowUs, true)
        else model.carry(key, [rule], nowUs)
        const least = hard.look(rule, allowed ? cost : 0, nowUs)
        const isWithin = least <= before.remaining && before.remaining <= most
        // With more rules than a floor's bucket holds, a check may meet a stricter floor than
        // the peek before it. It may refuse what peek allowed, but never admit what peek refused.
        const isHarder = rules.length > FLOOR_RULES && before.allowed && !allowed
        if (isHarder) harder += 1
        if ((allowed !== before.allowed && !isHarder) || !isWithin)
          wrong.push([step, least, before.remaining, most])
        counts[allowed ? 'allowed' : 'refused'] += 1
      }
      expect(wrong).toEqual([])
      expect(harder).toBeLessThan(10)
      expect(Math.min(counts.allowed, counts.refused)).toBeGreaterThan(20)
      expect(limiters[0].stats().evictions).toBeGreaterThan(20)
    },
  )

  it.each([1, 4, 16])('is never laxer than several rules in 40 tiers, maxKeys %d', (maxKeys) => {
    const { store, clock } = make(maxKeys)
    const tiers = buckets.map((_, i) => [buckets[i], counters[(3 * i) % 40], windows[(9 * i) % 40]])
    const policy = createPolicy({ tiers: Object.fromEntries(tiers.entries()), defaultTier: '0' })
    const limiters = [store, attachSharedMemory(store.handle, { clock })].map((store) =>
      createLimiter(policy, { store, share: true }),
    )
    const [model, random] = [createModel(), seededRandom(maxKeys)]
    const wrong: number[] = []
    let harder = 0
    for (let step = 0; step < 1_000; step += 1) {
      clock.advance(random.pick([0, 0, 0.001, 1, 37, 250]))
      const nowUs = clock.nowUs()
      const [key, tier] = [`key ${random.below(random.pick([4, 64]))}`, random.below(tiers.length)]
      const limiter = random.pick(limiters)
      const before = limiter.peek(key, 1, { tier: `${tier}` })
      const wanted = model.decide(key, tiers[tier], 1, nowUs, false)
      const { allowed } = limiter.check(key, 1, { tier: `${tier}` })
      if (allowed) model.decide(key, tiers[tier], 1, nowUs, true)
      else model.carry(key, tiers[tier], nowUs)
      const isHarder = before.allowed && !allowed
      if (isHarder) harder += 1
      if ((allowed !== before.allowed && !isHarder) || before.remaining > wanted.remaining)
        wrong.push(step)
    }
    expect(wrong).toEqual([])
    expect(harder).toBeLessThan(10)
    expect(limiters[0].stats().floored).toBeGreaterThan(20)
  })
})
