import { type Figures, newFigures } from '../../decision.ts'
import type { RedisRules } from './rule-set.ts'

/**
 * View is what one trip found of a key. What the script did with it is worked out here once more,
 * by the algorithms that the script has the twins of.
 */
export interface View {
  readonly set: RedisRules
  /** A state per stateful rule. */
  readonly states: Float64Array[]
  /** The instant up to which the key is blocked. */
  blockUs: number
}

/** passes tells whether `cost` would be admitted. */
export function passes({ set, states, blockUs }: View, cost: number, nowUs: number): boolean {
  if (blockUs > nowUs) return false
  return set.stateful.every(
    (rule, i) =>
      cost <= rule.capacity && rule.algorithm.waitUs(states[i], 0, rule, cost, nowUs) === 0,
  )
}

/** decideOn decides as `check` does, or as `peek` does if it is not to spend. */
export function decideOn(view: View, cost: number, spend: boolean, nowUs: number): Figures {
  const { set, states, blockUs } = view
  const { stateful, places } = set
  const figures = newFigures(set.rules.length)
  figures.blockedUs = blockUs > nowUs ? blockUs - nowUs : 0
  if (places.length < set.rules.length) figures.remaining.fill(Number.POSITIVE_INFINITY)
  let longest = figures.blockedUs
  for (let i = 0; i < places.length; i += 1) {
    const rule = stateful[i]
    const waitUs = rule.algorithm.waitUs(states[i], 0, rule, cost, nowUs)
    if (waitUs > longest) longest = waitUs
    figures.waitUs[places[i]] = waitUs
    if (cost > 0) {
      figures.delayUs[places[i]] = rule.algorithm.delayUs(states[i], 0, rule, nowUs)
    }
  }
  if (spend && longest === 0) chargeOn(view, cost, nowUs)
  for (let i = 0; i < places.length; i += 1) {
    const rule = stateful[i]
    figures.remaining[places[i]] = rule.algorithm.remaining(states[i], 0, rule, nowUs)
    figures.resetUs[places[i]] = Math.max(0, rule.algorithm.freshAtUs(states[i], 0, rule) - nowUs)
  }
  return figures
}

/** chargeOn debits `cost`, whether it fits or not. */
export function chargeOn({ set, states }: View, cost: number, nowUs: number): void {
  if (cost === 0) return
  set.stateful.forEach((rule, i) => {
    states[i] = rule.algorithm.grow(states[i], rule, nowUs)
    rule.algorithm.spend(states[i], 0, rule, cost, nowUs)
  })
}

/** refundOn undoes a spend. */
export function refundOn({ set, states }: View, cost: number, nowUs: number): void {
  set.stateful.forEach((rule, i) => {
    rule.algorithm.refund(states[i], 0, rule, cost, nowUs)
  })
}
