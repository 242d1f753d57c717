import { checkedWait } from '../core/algorithm.ts'
import type { Rule } from '../core/rule.ts'
import type { LaidRules } from './layout.ts'
import type { Lists } from './lists.ts'

/** stateOf is the array that holds a rule's state: the row's, or the list that the cell names. */
export function stateOf(rule: Rule, cells: Float64Array, at: number, lists: Lists): Float64Array {
  return rule.algorithm.grows ? lists.all[cells[at]] : cells
}

/** waitOf is the longest wait of all rules of the row at `base`; 0 when `cost` passes. */
export function waitOf(
  set: LaidRules,
  cells: Float64Array,
  base: number,
  lists: Lists,
  cost: number,
  nowUs: number,
): number {
  let longest = 0
  for (let i = 0; i < set.rules.length; i += 1) {
    const rule = set.rules[i]
    const at = base + set.at[i]
    const state = stateOf(rule, cells, at, lists)
    const wait = checkedWait(rule.algorithm.waitUs(state, at, rule, cost, nowUs), rule)
    if (wait > longest) longest = wait
  }
  return longest
}

/** spendRow debits `cost`, at least 1, from every rule. */
export function spendRow(
  set: LaidRules,
  cells: Float64Array,
  base: number,
  lists: Lists,
  cost: number,
  nowUs: number,
): void {
  for (let i = 0; i < set.rules.length; i += 1) {
    const rule = set.rules[i]
    const at = base + set.at[i]
    if (rule.algorithm.grows) growList(rule, cells, at, lists, nowUs)
    rule.algorithm.spend(stateOf(rule, cells, at, lists), at, rule, cost, nowUs)
  }
}

/**
 * decideRow asks every rule of the row at `base`, and spends `cost` if all admit it, the key is not
 * blocked and `spend` is set. It notes waits and delays in the set's readings and returns the longest
 * wait, the block's included: 0 when admitted. Every decision is made here.
 */
export function decideRow(
  set: LaidRules,
  cells: Float64Array,
  base: number,
  lists: Lists,
  cost: number,
  spend: boolean,
  blockedUs: number,
  nowUs: number,
): number {
  set.readings.blockedUs = blockedUs
  const wait = Math.max(blockedUs, readWaits(set, cells, base, lists, cost, nowUs))
  if (spend && wait === 0 && cost > 0) spendRow(set, cells, base, lists, cost, nowUs)
  return wait
}

/** refundRow gives `cost` back to every rule. */
export function refundRow(
  set: LaidRules,
  cells: Float64Array,
  base: number,
  lists: Lists,
  cost: number,
  nowUs: number,
): void {
  for (let i = 0; i < set.rules.length; i += 1) {
    const rule = set.rules[i]
    const at = base + set.at[i]
    rule.algorithm.refund(stateOf(rule, cells, at, lists), at, rule, cost, nowUs)
  }
}

/** readWaits notes every rule's wait and delay, before a spend, and gives the longest wait. */
export function readWaits(
  set: LaidRules,
  cells: Float64Array,
  base: number,
  lists: Lists,
  cost: number,
  nowUs: number,
): number {
  const { waitUs, delayUs } = set.readings
  let longest = 0
  for (let i = 0; i < set.rules.length; i += 1) {
    const rule = set.rules[i]
    const at = base + set.at[i]
    const state = stateOf(rule, cells, at, lists)
    const wait = checkedWait(rule.algorithm.waitUs(state, at, rule, cost, nowUs), rule)
    if (wait > longest) longest = wait
    waitUs[i] = wait
    if (set.delays) delayUs[i] = cost === 0 ? 0 : rule.algorithm.delayUs(state, at, rule, nowUs)
  }
  return longest
}

/** readRest notes what remains of every rule and when it is fresh, as they stand. */
export function readRest(
  set: LaidRules,
  cells: Float64Array,
  base: number,
  lists: Lists,
  nowUs: number,
): void {
  const { remaining, resetUs, nextUs } = set.readings
  for (let i = 0; i < set.rules.length; i += 1) {
    const rule = set.rules[i]
    const at = base + set.at[i]
    const state = stateOf(rule, cells, at, lists)
    const left = rule.algorithm.remaining(state, at, rule, nowUs)
    remaining[i] = left
    nextUs[i] = nextOf(rule, state, at, left, nowUs)
    const freshUs = rule.algorithm.freshAtUs(state, at, rule)
    resetUs[i] = freshUs > nowUs ? freshUs - nowUs : 0
  }
}

/** growList makes sure that a growing rule has a list of its own with room for one more entry. */
export function growList(
  rule: Rule,
  cells: Float64Array,
  at: number,
  lists: Lists,
  nowUs: number,
): void {
  const grown = rule.algorithm.grow(lists.all[cells[at]], rule, nowUs)
  if (cells[at] === 0) cells[at] = lists.add(grown)
  else lists.all[cells[at]] = grown
}

/** nextOf is how long until one unit more than the `left` would pass; 0 where a rule is full. */
export function nextOf(
  rule: Rule,
  state: Float64Array,
  at: number,
  left: number,
  nowUs: number,
): number {
  return left < rule.capacity ? rule.algorithm.waitUs(state, at, rule, left + 1, nowUs) : 0
}
