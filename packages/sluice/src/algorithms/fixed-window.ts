import { completeAlgorithm } from '../core/algorithm.ts'
import { MOST_COUNT, mulDiv } from '../core/exact.ts'
import { choiceParam } from '../core/params.ts'
import { type Rule, type RuleOptions, ruleFactory } from '../core/rule.ts'

/** WindowOptions are the options of `fixedWindow`. */
export interface WindowOptions extends RuleOptions {
  /**
   * `'request'` (default): a key's window opens at its first request. `'clock'`: windows start at
   * multiples of `per` since 1970 UTC, the same for all keys.
   */
  readonly align?: 'request' | 'clock'
}

/** Cells: the microsecond the window opened, and the units used in it. */
const algorithm = completeAlgorithm({
  name: 'fixed-window',
  code: 'F',
  params: { align: choiceParam(['request', 'clock']) },
  sharedParams: () => ({ align: 'request' }),
  lease: 'window',
  windows: ({ limit, perUs }) => ({ units: limit, leastUs: perUs, edges: true }),
  lua: 'fixed-window',
  cells: () => 2,

  waitUs(cells, at, rule, cost, nowUs) {
    if (usedIn(cells, at, rule, nowUs) + cost <= rule.limit) return 0
    return cells[at] + rule.perUs - nowUs
  },

  spend(cells, at, rule, cost, nowUs) {
    const used = usedIn(cells, at, rule, nowUs)
    if (used === 0) cells[at] = isAligned(rule) ? nowUs - (nowUs % rule.perUs) : nowUs
    cells[at + 1] = Math.min(used + cost, MOST_COUNT)
  },

  refund(cells, at, rule, cost, nowUs, spentUs) {
    if (spentUs < cells[at]) return
    cells[at + 1] = Math.max(0, usedIn(cells, at, rule, nowUs) - cost)
  },

  remaining(cells, at, rule, nowUs) {
    return Math.max(0, rule.limit - usedIn(cells, at, rule, nowUs))
  },

  freshAtUs: (cells, at, rule) => (cells[at + 1] === 0 ? 0 : cells[at] + rule.perUs),

  // Keeps the units and the elapsed part of the window. If either rule is aligned to the clock, there
  // is no elapsed part to keep: the new window is the aligned one at `nowUs`, or it opens now.
  carry(cells, at, from, to, nowUs) {
    cells[at + 1] = usedIn(cells, at, from, nowUs)
    if (from.perUs === to.perUs && isAligned(from) === isAligned(to)) return
    const elapsedUs = isAligned(from) ? 0 : Math.min(Math.max(0, nowUs - cells[at]), from.perUs)
    cells[at] = nowUs - (isAligned(to) ? nowUs % to.perUs : mulDiv(elapsedUs, to.perUs, from.perUs))
  },

  merge(cells, at, other, otherAt) {
    cells[at] = Math.max(cells[at], other[otherAt])
    cells[at + 1] = Math.max(cells[at + 1], other[otherAt + 1])
  },

  // Reopens the window now: if it were about to close, the key would get the limit again at once.
  begin(cells, at, rule, nowUs) {
    if (!isAligned(rule) && cells[at + 1] > 0) cells[at] = nowUs
  },

  lineUs(rule, _waitUs, resetUs, remaining, ahead, cost) {
    const windows = Math.ceil((ahead + cost - remaining) / rule.limit)
    return windows > 0 ? resetUs + (windows - 1) * rule.perUs : 0
  },
})

/** Returns the units used in the window that is open at `nowUs`; 0 if none is. */
function usedIn(cells: Float64Array, at: number, rule: Rule, nowUs: number): number {
  return nowUs - cells[at] < rule.perUs ? cells[at + 1] : 0
}

function isAligned(rule: Rule): boolean {
  return rule.params.align === 'clock'
}

/**
 * fixedWindow admits `limit` units per window. It is cheap and easy to explain, but up to twice the
 * limit may pass in a short time across the edge of two windows.
 */
export const fixedWindow = ruleFactory<WindowOptions, 'fixed-window'>(algorithm)
