import { describe, expect, it } from 'vitest'
import { RECENT } from '../core/algorithm.ts'
import { MOST_UNITS } from '../core/cost.ts'
import type { Rule } from '../core/rule.ts'
import { fixedWindow, slidingWindowLog, tokenBucket } from '../index.ts'
import { createMeter } from '../testing/meters.ts'
import { seededRandom } from '../testing/random.ts'
import { ruleMakers } from '../testing/streams.ts'

const START_US = 1_767_225_600_123_456

interface Spend {
  readonly cost: number
  readonly atUs: number
}

/** Lists the differences between algorithm and model when spends are refunded at random times. */
function differences(rule: Rule, seed: number): string[] {
  const random = seededRandom(seed)
  const meter = createMeter(rule)
  const { algorithm } = rule
  let cells: Float64Array = new Float64Array(3)
  let nowUs = START_US
  let spends: Spend[] = []
  const found: string[] = []
  for (let step = 0; step < 200; step += 1) {
    if (random.below(2) === 0) nowUs += Math.round(rule.perUs / random.pick([1, 2, 3, 7, 100]))
    const cost = 1 + random.below(Math.min(rule.capacity, random.pick([6, 6, MOST_UNITS])))
    if (random.below(3) > 0) {
      cells = algorithm.grow(cells, rule, nowUs)
      if (algorithm.take(cells, 0, rule, cost, nowUs) > 0) continue
      meter.spend(cost, nowUs)
      spends = [...spends.slice(-4), { cost, atUs: nowUs }]
    } else if (spends.length > 0) {
      const spend = random.pick(spends)
      spends = spends.filter((one) => one !== spend)
      const units = 1 + random.below(spend.cost)
      algorithm.refund(cells, 0, rule, units, nowUs, spend.atUs)
      meter.refund(units, nowUs, spend.atUs)
    }
    const left = algorithm.remaining(cells, 0, rule, nowUs)
    if (!meter.passes(left, nowUs) || (left < rule.capacity && meter.passes(left + 1, nowUs))) {
      found.push(`step ${step}: ${left} left`)
    }
  }
  return found
}

describe.each(Object.entries(ruleMakers))('a refunded spend of %s', (name, make) => {
  it('returns the same units as the model at any later time', () => {
    const random = seededRandom(7)
    for (let seed = 0; seed < 150; seed += 1) {
      const rule = make(random, name)
      expect(differences(rule, seed), `seed ${seed}, ${rule.text}`).toEqual([])
    }
  })
})

describe('refunding a spend', () => {
  const spent = (rule: Rule, cost: number, atUs: number, cells?: Float64Array) => {
    const state = rule.algorithm.grow(cells ?? new Float64Array(3), rule, atUs)
    rule.algorithm.spend(state, 0, rule, cost, atUs)
    return state
  }

  it('returns to a bucket only what has not refilled since', () => {
    const rule = tokenBucket({ limit: 10, per: '10s' })
    const cells = spent(rule, 10, START_US)
    spent(rule, 5, START_US + 5_000_000, cells)
    rule.algorithm.refund(cells, 0, rule, 10, START_US + 5_000_000, START_US)
    expect(rule.algorithm.remaining(cells, 0, rule, START_US + 5_000_000)).toBe(5)
  })

  it('returns nothing of a closed window to the open one', () => {
    const rule = fixedWindow({ limit: 3, per: '1s' })
    const cells = spent(rule, 3, START_US)
    spent(rule, 3, START_US + 1_000_000, cells)
    rule.algorithm.refund(cells, 0, rule, 3, START_US + 1_000_000, START_US)
    expect(rule.algorithm.remaining(cells, 0, rule, START_US + 1_000_000)).toBe(0)
    rule.algorithm.refund(cells, 0, rule, 3, START_US + 1_000_000, RECENT)
    expect(rule.algorithm.remaining(cells, 0, rule, START_US + 1_000_000)).toBe(3)
  })

  it('removes its own entry of a log, not the newest', () => {
    const rule = slidingWindowLog({ limit: 2, per: '1s' })
    const cells = spent(rule, 1, START_US)
    spent(rule, 1, START_US + 400_000, cells)
    rule.algorithm.refund(cells, 0, rule, 1, START_US + 500_000, START_US)
    spent(rule, 1, START_US + 500_000, cells)
    expect(rule.algorithm.waitUs(cells, 0, rule, 1, START_US + 500_000)).toBe(900_000)
  })
})
