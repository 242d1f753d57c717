import { checkedWait } from '../../core/algorithm.ts'
import { nextOf } from '../../rows/row.ts'
import type { RedisRules } from './rule-set.ts'

/**
 * View is what a trip found of a key. What the script did with it is worked out here once more, by
 * the algorithms that the script has the twins of.
 */
export interface View {
  /** A state per stateful rule. */
  readonly states: Float64Array[]
  /** The instant up to which the key is blocked. */
  blockUs: number
}

/** copyOf is a view that stays when the next key is read. */
export function copyOf({ states, blockUs }: View): View {
  return { states: states.map((state) => state.slice()), blockUs }
}

/** passes tells whether `cost` would be admitted. */
export function passes(set: RedisRules, view: View, cost: number, nowUs: number): boolean {
  if (view.blockUs > nowUs) return false
  return set.stateful.every(
    (rule, i) =>
      cost <= rule.capacity && rule.algorithm.waitUs(view.states[i], 0, rule, cost, nowUs) <= 0,
  )
}

/** decideOn decides into the set's readings, as `check` does, or `peek` if it is not to spend. */
export function decideOn(
  set: RedisRules,
  view: View,
  cost: number,
  spend: boolean,
  nowUs: number,
): void {
  const { stateful, places, readings } = set
  const { states, blockUs } = view
  readings.blockedUs = blockUs > nowUs ? blockUs - nowUs : 0
  let longest = readings.blockedUs
  for (let i = 0; i < places.length; i += 1) {
    const rule = stateful[i]
    const waitUs = checkedWait(rule.algorithm.waitUs(states[i], 0, rule, cost, nowUs), rule)
    if (waitUs > longest) longest = waitUs
    readings.waitUs[places[i]] = waitUs
    readings.delayUs[places[i]] = cost === 0 ? 0 : rule.algorithm.delayUs(states[i], 0, rule, nowUs)
  }
  if (spend && longest === 0) chargeOn(set, view, cost, nowUs)
  for (let i = 0; i < places.length; i += 1) {
    const rule = stateful[i]
    const freshUs = rule.algorithm.freshAtUs(states[i], 0, rule)
    const left = rule.algorithm.remaining(states[i], 0, rule, nowUs)
    readings.remaining[places[i]] = left
    readings.nextUs[places[i]] = nextOf(rule, states[i], 0, left, nowUs)
    readings.resetUs[places[i]] = freshUs > nowUs ? freshUs - nowUs : 0
  }
}

/** chargeOn debits `cost`, whether it fits or not. */
export function chargeOn(
  { stateful }: RedisRules,
  { states }: View,
  cost: number,
  nowUs: number,
): void {
  if (cost === 0) return
  for (let i = 0; i < stateful.length; i += 1) {
    const rule = stateful[i]
    states[i] = rule.algorithm.grow(states[i], rule, nowUs)
    rule.algorithm.spend(states[i], 0, rule, cost, nowUs)
  }
}

/** refundOn undoes a spend. */
export function refundOn(
  { stateful }: RedisRules,
  { states }: View,
  cost: number,
  nowUs: number,
): void {
  for (let i = 0; i < stateful.length; i += 1) {
    const rule = stateful[i]
    rule.algorithm.refund(states[i], 0, rule, cost, nowUs)
  }
}
