import { type Cost, costAt } from '../core/cost.ts'
import type { Held } from '../core/held.ts'
import type { LaidRules } from './layout.ts'
import { growList, type Row, stateOf } from './row.ts'

/**
 * noteHolds gives new states their generation, and stores in the set what a permit needs to
 * release.
 */
export function noteHolds(set: LaidRules, { cells, base }: Row): void {
  for (let i = 0; i < set.rules.length; i += 1) {
    const { algorithm } = set.rules[i]
    if (!algorithm.holds) continue
    const at = base + set.at[i]
    if (cells[at] === 0) cells[at] = set.generation
    set.held[2 * i] = cells[at]
    set.held[2 * i + 1] = algorithm.holdAt(cells, at)
  }
}

/**
 * finishRow ends the holds of a permit, and charges `change` per rule; negative units are refunded.
 * A hold that has ended, or that belongs to another generation of the row, frees nothing.
 */
export function finishRow(set: LaidRules, row: Row, held: Held, change: Cost, nowUs: number): void {
  const { cells, base, lists } = row
  for (let i = 0; i < set.rules.length; i += 1) {
    const rule = set.rules[i]
    const { algorithm } = rule
    const at = base + set.at[i]
    if (algorithm.holds) {
      releaseOne(set, row, i, held, nowUs)
      continue
    }
    const units = costAt(change, i)
    if (units > 0 && algorithm.grows) growList(rule, cells, at, lists, nowUs)
    const state = stateOf(rule, cells, at, lists)
    if (units > 0) algorithm.spend(state, at, rule, units, nowUs)
    else if (units < 0) algorithm.refund(state, at, rule, -units, nowUs, costAt(held.spentUs, i))
  }
}

/** chargesOf returns the positive part of a change, and 0 for rules that hold units. */
export function chargesOf({ rules }: LaidRules, change: Cost): Cost {
  const units = rules.map(({ algorithm }, i) =>
    algorithm.holds ? 0 : Math.max(0, costAt(change, i)),
  )
  return units.length === 1 ? units[0] : units
}

/**
 * extendRow restarts the holds of a permit now and stores them in the set; false if one has ended.
 */
export function extendRow(set: LaidRules, row: Row, held: Held, nowUs: number): boolean {
  for (let i = 0; i < set.rules.length; i += 1) {
    const rule = set.rules[i]
    const units = costAt(held.cost, i)
    if (!rule.algorithm.holds || units === 0) continue
    if (!releaseOne(set, row, i, held, nowUs)) return false
    const at = row.base + set.at[i]
    rule.algorithm.spend(row.cells, at, rule, units, nowUs)
  }
  noteHolds(set, row)
  return true
}

/** holdsNothing tells whether no rule holds units for a permit. */
export function holdsNothing({ rules }: LaidRules, { cost }: Held): boolean {
  return rules.every(({ algorithm }, i) => !algorithm.holds || costAt(cost, i) === 0)
}

/** Ends the hold of one rule; false if it had ended already. */
function releaseOne(
  set: LaidRules,
  { cells, base }: Row,
  i: number,
  { cost, holds }: Held,
  nowUs: number,
): boolean {
  const rule = set.rules[i]
  const at = base + set.at[i]
  const units = costAt(cost, i)
  if (units === 0 || holds[2 * i] === 0 || cells[at] !== holds[2 * i]) return false
  return rule.algorithm.release(cells, at, rule, units, holds[2 * i + 1], nowUs)
}
