import { checkedWait } from '../core/algorithm.ts'
import { type Cost, costAt, costsAny } from '../core/cost.ts'
import type { Rule } from '../core/rule.ts'
import { noteHolds } from './hold.ts'
import type { LaidRules } from './layout.ts'
import type { Lists } from './lists.ts'

/** Row is a row where it lies: its cells begin at `base`, and those of growing rules name lists. */
export interface Row {
  cells: Float64Array
  base: number
  readonly lists: Lists
}

/** stateOf is the array that holds a rule's state: the row's, or the list that the cell names. */
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
 * decideRow asks every rule, and debits `cost` if all admit it and `spend` is set;
 * a refusal changes nothing. It returns the longest wait, 0 when admitted, and notes waits and delays in
 * the set, for `decisionOf`. Every decision on any store is made here.
 */
export function decideRow(
  set: LaidRules,
  row: Row,
  cost: Cost,
  spend: boolean,
  nowUs: number,
): number {
  const { only } = set
  // Short, so that V8 inlines it: one rule that asks and spends in one step is what nearly all are.
  if (only === undefined || !spend) return decideRules(set, row, cost, spend, nowUs)
  // One rule has a number for its cost.
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

/** The same for any rules, step by step. */
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

/** admitRow spends what all rules have admitted, and notes what is held. */
export function admitRow(set: LaidRules, row: Row, cost: Cost, nowUs: number): void {
  spendRow(set, row, cost, nowUs)
  if (set.holds) noteHolds(set, row)
}

/** Before a spend: how long each rule delays what it admits. */
function noteDelays(set: LaidRules, { cells, base, lists }: Row, cost: Cost, nowUs: number): void {
  for (let i = 0; i < set.rules.length; i += 1) {
    const rule = set.rules[i]
    const at = base + set.at[i]
    const state = stateOf(rule, cells, at, lists)
    set.delayUs[i] = costAt(cost, i) === 0 ? 0 : rule.algorithm.delayUs(state, at, rule, nowUs)
  }
}

/** punishRow counts a refusal, and gives for how many microseconds the key is to be blocked. */
export function punishRow(set: LaidRules, { cells, base }: Row, nowUs: number): number {
  const { penalty } = set
  if (penalty === undefined) return 0
  return penalty.algorithm.punish!(cells, base + set.penaltyAt, penalty, nowUs)
}

/** refundRow gives `cost` back to every rule, as it was spent at `spentUs`. */
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
