import { SluiceError, shown } from '../errors.ts'
import { MOST_COUNT, mulDiv } from '../exact.ts'
import { defineRule, type Rule, type RuleOptions } from '../rule.ts'
import { defineAlgorithm } from './algorithm.ts'

/** What `fixedWindow` takes. */
export interface WindowOptions extends RuleOptions {
  /**
   * `'request'` (default): a key's window opens at its first request. `'clock'`: windows start at
   * multiples of `per` since 1970 UTC, the same for all keys.
   */
  readonly align?: 'request' | 'clock'
}

/** Cells: the microsecond the window opened, and the units used in it. */
const algorithm = defineAlgorithm({
  name: 'fixed-window',
  cells: () => 2,

  waitUs(cells, at, rule, cost, nowUs) {
    if (usedIn(cells, at, rule, nowUs) + cost <= rule.limit) return 0
    return cells[at] + rule.perUs - nowUs
  },

  spend(cells, at, rule, cost, nowUs) {
    const used = usedIn(cells, at, rule, nowUs)
    if (used === 0) cells[at] = rule.aligned ? nowUs - (nowUs % rule.perUs) : nowUs
    cells[at + 1] = Math.min(used + cost, MOST_COUNT)
  },

  refund(cells, at, rule, cost, nowUs) {
    cells[at + 1] = Math.max(0, usedIn(cells, at, rule, nowUs) - cost)
  },

  remaining(cells, at, rule, nowUs) {
    return Math.max(0, rule.limit - usedIn(cells, at, rule, nowUs))
  },

  freshAtUs: (cells, at, rule) => (cells[at + 1] === 0 ? 0 : cells[at] + rule.perUs),

  // The window keeps its units and how far it has run; an aligned one is the present one.
  carry(cells, at, from, to, nowUs) {
    cells[at + 1] = usedIn(cells, at, from, nowUs)
    if (from.perUs === to.perUs && from.aligned === to.aligned) return
    const elapsedUs = Math.max(0, nowUs - cells[at])
    cells[at] = to.aligned
      ? nowUs - (nowUs % to.perUs)
      : nowUs - mulDiv(Math.min(elapsedUs, from.perUs), to.perUs, from.perUs)
  },

  // A key that starts from another's units opens a window of its own: an old one that is about to
  // close would let it have the limit again at once.
  merge(cells, at, other, otherAt, rule, nowUs) {
    const starts = cells[at + 1] === 0 && !rule.aligned
    cells[at] = starts ? nowUs : Math.max(cells[at], other[otherAt])
    cells[at + 1] = Math.max(cells[at + 1], other[otherAt + 1])
  },
})

/** Units used in the window open at `nowUs`; 0 when none is. */
function usedIn(cells: Float64Array, at: number, rule: Rule, nowUs: number): number {
  return nowUs - cells[at] < rule.perUs ? cells[at + 1] : 0
}

/**
 * fixedWindow admits `limit` units per window: cheap and easy to explain, but up to twice the
 * limit may pass in a short time across the edge of two windows.
 */
export function fixedWindow(options: WindowOptions): Rule {
  const align = options?.align ?? 'request'
  if (align !== 'request' && align !== 'clock') {
    throw new SluiceError(
      'SLUICE_OPTION',
      `fixed-window rule: align must be 'request' or 'clock', got ${shown(align)}.`,
    )
  }
  return defineRule(algorithm, options, { aligned: align === 'clock', extra: ['align'] })
}
