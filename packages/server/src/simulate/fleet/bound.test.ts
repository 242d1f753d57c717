import fc from 'fast-check'
import { defineAlgorithm, defineRule, fixedWindow, parseRule, type Rule } from 'sluice'
import { expect, it } from 'vitest'
import { type Bound, ruleAlone, worstExcess } from './bound.ts'

const instants = fc
  .array(fc.integer({ min: 0, max: 25_000 }), { minLength: 1, maxLength: 60, size: 'max' })
  .map((list) => Float64Array.from(list).sort())

const bounds = fc.record<Bound>({
  leaseUs: fc.constantFrom(0, 700, 5_000, 12_345),
  nodes: fc.constantFrom(0, 1, 4),
  fleetSize: fc.constantFrom(1, 3, 9),
  units: fc.constantFrom(0, 2),
})

/** What the rule admits in an interval of that length, by docs/guide/algorithms.md. */
const admits: Record<string, (rule: Rule, us: number) => number> = {
  'token-bucket': ({ capacity, limit, perUs }, us) => capacity + (limit * us) / perUs,
  'fixed-window': ({ limit, perUs }, us) => limit * (us === 0 ? 1 : Math.ceil(us / perUs) + 1),
  'sliding-window-counter': ({ limit, perUs }, us) =>
    (2 * limit - 1) * (Math.floor(us / perUs) + 1),
}

/** Checks each pair of instants. */
function slowExcess(rule: Rule, bound: Bound, all: Float64Array): number {
  const { leaseUs, nodes, fleetSize, units } = bound
  const admitted = (us: number) => admits[rule.algorithm.name](rule, us)
  const share = (us: number) =>
    (nodes / fleetSize) * (admitted(us) + Math.max(0, fleetSize - rule.capacity))
  let worst = Number.NEGATIVE_INFINITY
  for (let i = 0; i < all.length; i += 1) {
    for (let j = i; j < all.length; j += 1) {
      const us = all[j] - all[i]
      worst = Math.max(worst, j - i + 1 - (admitted(us + leaseUs) + share(us) + units))
    }
  }
  return worst
}

it.each(['3/10ms burst 4', '2/7ms fixed-window', '3/10ms sliding-window-counter'])(
  'the worst excess over %s is that of the worst pair of instants',
  (text) => {
    const rule = parseRule(text)
    let over = 0
    fc.assert(
      fc.property(instants, bounds, (all, bound) => {
        const slow = slowExcess(rule, bound, all)
        if (slow > 0) over += 1
        expect(worstExcess(rule, bound, all)).toBeCloseTo(slow, 6)
      }),
      { numRuns: 500 },
    )
    // The instants test something only if some of them are too many.
    expect(over).toBeGreaterThan(20)
  },
)

it('a bucket may admit its burst and the rate, and not one unit more', () => {
  const rule = parseRule('10/1s burst 3')
  const exact = Float64Array.of(0, 0, 0, 100_000, 200_000)
  expect(worstExcess(rule, ruleAlone, exact)).toBe(0)
  expect(worstExcess(rule, ruleAlone, exact.with(4, 199_999))).toBeCloseTo(0.00001, 9)
  expect(worstExcess(rule, { ...ruleAlone, leaseUs: 100_000 }, exact)).toBe(-1)
})

it('windows of an algorithm of the user may admit two limits across an edge, and not three', () => {
  const weekly = defineAlgorithm({
    ...fixedWindow.algorithm,
    name: 'weekly',
    windows: ({ limit }) => ({ units: limit, leastUs: 10_000, edges: true }),
  })
  const rule = defineRule(weekly, { limit: 2, per: '1d' })
  expect(worstExcess(rule, ruleAlone, Float64Array.of(0, 9_000, 9_000, 10_000))).toBe(0)
  expect(worstExcess(rule, ruleAlone, Float64Array.of(0, 0, 9_000, 9_000, 10_000))).toBe(1)
})

it('no admission is no excess', () => {
  expect(worstExcess(parseRule('1/1s'), ruleAlone, new Float64Array())).toBe(
    Number.NEGATIVE_INFINITY,
  )
})
