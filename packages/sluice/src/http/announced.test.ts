import fc from 'fast-check'
import { parseDictionary, parseList } from 'structured-headers'
import { describe, expect, it } from 'vitest'
import { fixedWindow } from '../algorithms/fixed-window.ts'
import { leakyBucket } from '../algorithms/leaky-bucket.ts'
import { slidingWindowCounter } from '../algorithms/sliding-window-counter.ts'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import type { Decision } from '../core/decision.ts'
import type { Rule } from '../core/rule.ts'
import { createLimiter } from '../limiter/limiter.ts'
import { manualClock } from '../testing/manual-clock.ts'
import { seededRandom } from '../testing/random.ts'
import { ruleMakers } from '../testing/streams.ts'
import { type Dialect, fieldsOf } from './fields.ts'
import { partitionOf } from './partition.ts'
import { refusalOf } from './refusal.ts'

const told = (dialect: Dialect, decision: Decision, rules: readonly Rule[]) =>
  Object.fromEntries(fieldsOf([dialect], decision, rules, 0))

describe('the policy of a rule', () => {
  it.each<[Rule, string]>([
    [tokenBucket({ limit: 100, per: '1s', burst: 1 }), '100;w=1;sluice-burst=1'],
    [tokenBucket({ limit: 7, per: 250, burst: 3 }), '28;w=1;sluice-burst=3'],
    [tokenBucket({ limit: 7, per: 300, burst: 3 }), '23;w=1;sluice-burst=3'],
    [tokenBucket({ limit: 100, per: 1_500, burst: 3 }), '133;w=2;sluice-burst=3'],
    [leakyBucket({ limit: 10, per: '1m', queue: 4 }), '10;w=60;sluice-burst=5'],
    [leakyBucket({ limit: 10, per: '1m' }), '11;w=66'],
    [tokenBucket({ limit: 10, per: '1m', burst: 25 }), '25;w=150'],
    [tokenBucket({ limit: 10_000_000, per: 1, burst: 1 }), '10000000000;w=1;sluice-burst=1'],
    // 10^15 a second are one more than the largest integer of a field.
    [
      tokenBucket({ limit: 10 ** 12, per: 1, burst: 10 ** 9 }),
      '999999999999999;w=1;sluice-burst=1000000000',
    ],
    [tokenBucket({ limit: 10 ** 12, per: '1d' }), '1000000000000;w=86400'],
    [
      tokenBucket({ limit: 999_999_999_989, per: 86_399_999, burst: 7 }),
      '1000000011563;w=86400;sluice-burst=7',
    ],
    [fixedWindow({ limit: 7, per: 250 }), '7;w=1'],
    [slidingWindowCounter({ limit: 7, per: '1h' }), '7;w=3600'],
  ])('%# is announced so that a client can pace itself', (rule, policy) => {
    const decision = createLimiter(rule, { clock: manualClock() }).check('a')
    for (const dialect of ['draft-6', 'draft-7'] as const) {
      expect(told(dialect, decision, [rule])['ratelimit-policy']).toBe(policy)
    }
    expect(told('draft-11', decision, [rule])['ratelimit-policy']).toBe(
      `"${rule.name}";q=${policy}`,
    )
  })
})

describe('the remaining units and their window', () => {
  const minute = tokenBucket({ limit: 60, per: '1m' })
  /** `r;t` once so many units are used, and the next request has this cost. */
  const after = (rule: Rule, used: number, cost = 0) => {
    const limiter = createLimiter(rule, { clock: manualClock() })
    limiter.charge('a', used)
    const { ratelimit } = told('draft-11', limiter.check('a', cost), [rule])
    return ratelimit.slice(ratelimit.indexOf(';') + 1)
  }

  it('of an unused key are the whole policy', () => {
    expect(after(minute, 0)).toBe('r=60;t=60')
    expect(after(fixedWindow({ limit: 5, per: '1h' }), 0)).toBe('r=5;t=3600')
    // Less than the policy, at the same rate.
    expect(after(tokenBucket({ limit: 60, per: '1m', burst: 20 }), 0)).toBe('r=20;t=20')
  })

  it('after the last unit are the time to the next one, not until all have refilled', () => {
    expect(after(minute, 59, 1)).toBe('r=0;t=1')
    expect(after(fixedWindow({ limit: 2, per: '1m' }), 1, 1)).toBe('r=0;t=60')
    // Its next unit comes after the next window has begun, which is longer than the policy says.
    expect(after(slidingWindowCounter({ limit: 8, per: '1m' }), 7, 1)).toBe('r=0;t=68')
  })

  it('suggest no higher rate than the policy', () => {
    expect(after(minute, 30)).toBe('r=30;t=30')
    expect(after(tokenBucket({ limit: 100, per: '1m', burst: 20 }), 6)).toBe('r=14;t=9')
  })

  it('of a refusal are the time until it would pass, and the units that this time allows', () => {
    // 14 are left, and the cost would pass after 0.6 s: one second, for which the policy has one.
    expect(after(tokenBucket({ limit: 100, per: '1m', burst: 20 }), 6, 15)).toBe('r=1;t=1')
    expect(after(minute, 50, 60)).toBe('r=10;t=50')
    // Debt.
    expect(after(minute, 600, 1)).toBe('r=0;t=541')
  })
})

const names = Object.keys(ruleMakers)

/** A random key's life under random rules, up to one decision. */
const life = fc.record({
  seed: fc.nat(),
  rules: fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 3 }),
  steps: fc.array(
    fc.record({
      verb: fc.constantFrom('check', 'charge', 'refund', 'advance'),
      size: fc.nat(1_000),
    }),
    { maxLength: 12 },
  ),
  cost: fc.nat(1_000),
  blockMs: fc.option(fc.integer({ min: 1, max: 100_000 }), { freq: 10 }),
})

/** Units that are interesting for any capacity. */
const unitsOf = (size: number, capacity: number) =>
  [0, 1, 1, 2, Math.ceil(capacity / 2), capacity - 1, capacity][size % 7] % (capacity + 1)

type Life = typeof life extends fc.Arbitrary<infer T> ? T : never

/** The last decision of a life. */
function decide({ seed, rules: made, steps, cost, blockMs }: Life) {
  const random = seededRandom(seed)
  const rules = made.map((name, i) => ruleMakers[name](random, `${name} "${i}\\`))
  const clock = manualClock()
  const limiter = createLimiter(rules, { clock })
  const capacity = Math.min(...rules.map((rule) => rule.capacity))
  for (const { verb, size } of steps) {
    if (verb === 'advance') clock.advance(10 ** (size % 7) * (1 + (size % 13)))
    else if (verb === 'check') limiter.check('a', unitsOf(size, capacity))
    else limiter[verb]('a', Math.max(1, unitsOf(size, capacity)))
  }
  if (blockMs !== null) limiter.block('a', blockMs)
  return { rules, decision: limiter.check('a', unitsOf(cost, capacity)) }
}

/** Items of a field, by name. */
function itemsOf(field: string) {
  const list = parseList(field).map(([name, parameters]) => [
    name as string,
    Object.fromEntries(parameters) as Record<string, number>,
  ])
  return new Map(list as [string, Record<string, number>][])
}

const isCount = (n: number) => Number.isSafeInteger(n) && n >= 0

/** What contradicts something else in the answer to a request; nothing, it should be. */
function contradictions(rules: readonly Rule[], decision: Decision): string[] {
  const nowMs = 1_767_225_600_123
  const fields = Object.fromEntries(
    fieldsOf(['x', 'draft-11'], decision, rules, nowMs, partitionOf('a')),
  )
  const policies = itemsOf(fields['ratelimit-policy'])
  const readings = itemsOf(fields.ratelimit)
  const refusal = decision.allowed ? undefined : refusalOf(decision, rules)
  const violated: string[] = refusal ? JSON.parse(refusal.body)['violated-policies'] : []
  const retryAfter = Number(refusal?.fields.find(([name]) => name === 'retry-after')?.[1])
  const wrong: string[] = []
  const must = (holds: boolean, what: string) => void (holds || wrong.push(what))
  must(decision.allowed === (violated.length === 0), 'a refusal names the rules that refuse')
  for (const [i, rule] of rules.entries()) {
    const { q, w, 'sluice-burst': burst } = policies.get(rule.name)!
    const { r, t } = readings.get(rule.name)!
    const each = decision.rules[i]
    must(isCount(q) && isCount(w) && w > 0, `${rule.name}: q and w`)
    must(isCount(r) && isCount(t), `${rule.name}: r and t`)
    must((burst ?? q) === rule.capacity, `${rule.name}: capacity`)
    must(
      BigInt(q) * BigInt(rule.perUs) <= BigInt(rule.limit) * BigInt(w) * 1_000_000n,
      `${rule.name}: q/w is no higher rate than the rule's`,
    )
    must(r <= q && r <= each.remaining, `${rule.name}: r is no more than there is`)
    must(BigInt(r) * BigInt(w) <= BigInt(q) * BigInt(t), `${rule.name}: r/t is at most q/w`)
    if (violated.includes(rule.name)) {
      must(retryAfter >= t, `${rule.name}: Retry-After is at least t`)
      must(t * 1_000 >= each.retryAfterMs, `${rule.name}: t is at least the wait`)
    } else {
      must(t <= w || r === 0, `${rule.name}: t is at most w while something is left`)
      must(r === each.remaining, `${rule.name}: r is what remains`)
      const nextS = Math.min(r === 0 ? Number.POSITIVE_INFINITY : w, each.nextAfterMs / 1_000)
      must(t >= nextS, `${rule.name}: t is no earlier than a unit`)
    }
    if (each.remaining === q && decision.source !== 'blocked') {
      must(r === q && t === w, `${rule.name}: all of it`)
    }
  }
  const { t } = readings.get(decision.rule)!
  const seven = parseDictionary(told('draft-7', decision, rules).ratelimit)
  must(seven.get('reset')?.[0] === t, 'reset of draft-7 is t')
  must(told('draft-6', decision, rules)['ratelimit-reset'] === String(t), 'so is that of draft-6')
  const resetMs = Number(fields['x-ratelimit-reset']) * 1_000 - nowMs
  const deciding = decision.rules.find(({ rule }) => rule === decision.rule)!
  const fullMs =
    decision.source === 'blocked'
      ? Math.max(deciding.resetAfterMs, decision.retryAfterMs)
      : deciding.resetAfterMs
  must(resetMs >= fullMs - 0.01 && resetMs < fullMs + 1_000, 'X-RateLimit-Reset is the reset')
  return wrong
}

it('fields contradict neither each other nor the body, for any decision', () => {
  let refused = 0
  let admitted = 0
  fc.assert(
    fc.property(life, (each) => {
      const { rules, decision } = decide(each)
      if (decision.allowed) admitted += 1
      else refused += 1
      expect(contradictions(rules, decision)).toEqual([])
    }),
    { numRuns: 2_000 },
  )
  expect(Math.min(refused, admitted)).toBeGreaterThan(50)
})
