import { checkedWait } from '../core/algorithm.ts'
import { type Cost, costAt, costsAny } from '../core/cost.ts'
import type { Rule } from '../core/rule.ts'
import { noteHolds } from './hold.ts'
import type { LaidRules } from './layout.ts'
import type { Lists } from './lists.ts'

/**
 * Row is a view of a row in place. Its cells begin at `base`; the cell of a growing rule is an
 * index into `lists`.
 */
export interface Row {
  cells: Float64Array
  base: number
  readonly lists: Lists
}

/**
 * stateOf returns the array with a rule's state: the row's cells, or the list that the cell refers
 * to.
 */
export function stateOf(rule: Rule, cells: Float64Array, at: number, lists: Lists): Float64Array {
  return rule.algorithm.grows ? lists.all[cells[at]] : cells
}

/** spendRow debits `cost` from every rule, whether it fits or leaves debt. */
export function spendRow(
  set: LaidRules,
  { cells, base, lists }: Row,
  cost: Cost,
  nowUs: number,
): void {
  const { rules } = set
  for (let i = 0; i < rules.length; i += 1) {
    const units = costAt(cost, i)
    if (units === 0) continue
    const rule = rules[i]
    const at = base + set.at[i]
    if (rule.algorithm.grows) growList(rule, cells, at, lists, nowUs)
    rule.algorithm.spend(stateOf(rule, cells, at, lists), at, rule, units, nowUs)
  }
}

/**
 * decideRow asks every rule, and debits `cost` if all admit it and `spend` is set. A refusal changes
 * nothing. Returns the longest wait, 0 when admitted, and stores waits and delays in the set for
 * `decisionOf`. Every store decides through this function or through `askRow` and `admitRow`.
 */
export function decideRow(
  set: LaidRules,
  row: Row,
  cost: Cost,
  spend: boolean,
  nowUs: number,
): number {
  const { only } = set
  // Short, so that V8 inlines it: nearly every set has a single rule, which decides in one `take`.
  if (only === undefined || !spend) return decideRules(set, row, cost, spend, nowUs)
  // With a single rule, the cost is a number.
  const wait = only.algorithm.take(row.cells, row.base + set.onlyAt, only, cost as number, nowUs)
  set.waitUs[0] = wait
  return wait
}

/** askRow asks every rule and spends nothing: the first half of a decision over several rows. */
export function askRow(set: LaidRules, row: Row, cost: Cost, nowUs: number): number {
  const { only } = set
  if (only === undefined) return decideRules(set, row, cost, false, nowUs)
  const at = row.base + set.onlyAt
  const wait = checkedWait(only.algorithm.waitUs(row.cells, at, only, cost as number, nowUs), only)
  set.waitUs[0] = wait
  return wait
}

/** Does what `decideRow` does, for any number and kind of rules. */
function decideRules(set: LaidRules, row: Row, cost: Cost, spend: boolean, nowUs: number): number {
  const { rules, waitUs } = set
  const { cells, base, lists } = row
  let longest = 0
  for (let i = 0; i < rules.length; i += 1) {
    const rule = rules[i]
    const at = base + set.at[i]
    const state = stateOf(rule, cells, at, lists)
    const wait = checkedWait(rule.algorithm.waitUs(state, at, rule, costAt(cost, i), nowUs), rule)
    waitUs[i] = wait
    if (wait > longest) longest = wait
  }
  if (set.delays) noteDelays(set, row, cost, nowUs)
  if (spend && longest === 0 && costsAny(cost)) admitRow(set, row, cost, nowUs)
  return longest
}

/** admitRow spends a cost that all rules have admitted, and records the holds in the set. */
export function admitRow(set: LaidRules, row: Row, cost: Cost, nowUs: number): void {
  spendRow(set, row, cost, nowUs)
  if (set.holds) noteHolds(set, row)
}

/** Stores in the set how long each rule delays the request. Call before the spend. */
function noteDelays(set: LaidRules, { cells, base, lists }: Row, cost: Cost, nowUs: number): void {
  for (let i = 0; i < set.rules.length; i += 1) {
    const rule = set.rules[i]
    const at = base + set.at[i]
    const state = stateOf(rule, cells, at, lists)
    set.delayUs[i] = costAt(cost, i) === 0 ? 0 : rule.algorithm.delayUs(state, at, rule, nowUs)
  }
}

/** punishRow counts a refusal and returns for how many microseconds to block the key; 0 for none. */
export function punishRow(set: LaidRules, { cells, base }: Row, nowUs: number): number {
  const { penalty } = set
  if (penalty === undefined) return 0
  return penalty.algorithm.punish!(cells, base + set.penaltyAt, penalty, nowUs)
}

/** refundRow gives every rule back the `cost` that was spent at `spentUs`. */
export function refundRow(
  set: LaidRules,
  { cells, base, lists }: Row,
  cost: Cost,
  nowUs: number,
  spentUs: number,
): void {
  for (let i = 0; i < set.rules.length; i += 1) {
    const rule = set.rules[i]
    const at = base + set.at[i]
    const units = costAt(cost, i)
    rule.algorithm.refund(stateOf(rule, cells, at, lists), at, rule, units, nowUs, spentUs)
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
