import { describe, expect, it } from 'vitest'
import { MOST_UNITS } from '../core/cost.ts'
import { defineAlgorithm, type Rule, ruleFactory, unlimited } from '../index.ts'
import { type Random, seededRandom } from '../testing/random.ts'
import { ruleMakers } from '../testing/streams.ts'
import { decisionOf } from './decision-of.ts'
import { createLayout, type LaidRules } from './layout.ts'
import { createLists } from './lists.ts'
import { decideRow, type Row } from './row.ts'

/** A user-defined algorithm without `take`: `limit` units, then none until `per` after the last. */
const own = {
  name: 'pause',
  cells: () => 2,
  waitUs(cells, at, rule, cost, nowUs) {
    const used = nowUs < cells[at] ? cells[at + 1] : 0
    return used + cost <= rule.limit ? 0 : cells[at] - nowUs
  },
  spend(cells, at, rule, cost, nowUs) {
    if (nowUs >= cells[at]) cells[at + 1] = 0
    cells[at] = nowUs + rule.perUs
    cells[at + 1] += cost
  },
  remaining: (cells, at, rule, nowUs) =>
    Math.max(0, rule.limit - (nowUs < cells[at] ? cells[at + 1] : 0)),
  freshAtUs: (cells, at) => cells[at],
  merge() {},
} satisfies Parameters<typeof defineAlgorithm>[0]

const pause = ruleFactory(defineAlgorithm(own))

/** The same with a broken `take`, which does not spend. */
const forgets = ruleFactory(
  defineAlgorithm({ ...own, name: 'forgets', take: (...call) => own.waitUs(...call) }),
)

const makers: ((random: Random) => Rule)[] = [
  ...Object.values(ruleMakers),
  (random) => pause({ limit: random.pick([1, 3, 10]), per: random.pick(['1s', '1m']) }),
  () => unlimited(),
]

/** Tells whether the fast path for one rule and the general path give the same answers. */
function areAlike(rule: Rule, random: Random): boolean {
  const layout = createLayout()
  const short = layout.use([rule], () => {})
  const plain: LaidRules = { ...short, only: undefined, waitUs: new Float64Array(1) }
  const newRow = (): Row => ({
    cells: new Float64Array(layout.stride),
    base: 0,
    lists: createLists(),
  })
  const rows = [newRow(), newRow()]
  const costs = [0, 1, 1, 2, 5, rule.capacity].filter((cost) => cost <= rule.capacity)
  let nowUs = 1_700_000_000_000_000
  for (let step = 0; step < 200; step += 1) {
    nowUs += random.pick([-1, 0, 0, 1, 333_000, rule.perUs])
    const cost = Math.min(random.pick(costs), MOST_UNITS)
    const spend = random.below(4) > 0
    const told = [short, plain].map((set, i) => {
      const wait = decideRow(set, rows[i], cost, spend, nowUs)
      return { wait, decision: decisionOf(set, rows[i], cost, 0, nowUs), cells: rows[i].cells }
    })
    if (JSON.stringify(told[0]) !== JSON.stringify(told[1])) return false
  }
  return true
}

describe('decideRow', () => {
  it('decides the same on the fast path as on the general one', () => {
    const random = seededRandom(7)
    const shortened = new Set<string>()
    for (let round = 0; round < 600; round += 1) {
      const rule = random.pick(makers)(random)
      expect(areAlike(rule, random), rule.text).toBe(true)
      if (createLayout().use([rule], () => {}).only) shortened.add(rule.algorithm.name)
    }
    expect([...shortened].sort()).toEqual([
      'calendar-window',
      'fixed-window',
      'gcra',
      'pause',
      'sliding-window-counter',
      'token-bucket',
      'unlimited',
    ])
  })

  it('is caught by this test if its fast path is wrong', () => {
    expect(areAlike(forgets({ limit: 3, per: '1m' }), seededRandom(7))).toBe(false)
  })
})
