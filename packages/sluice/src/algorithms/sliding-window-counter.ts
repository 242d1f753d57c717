import { completeAlgorithm } from '../core/algorithm.ts'
import { MOST_COUNT, mulDiv } from '../core/exact.ts'
import { type Rule, type RuleOptions, ruleFactory } from '../core/rule.ts'

/** Cells: the window's start, the units used in it, and the units of the window before. */
const algorithm = completeAlgorithm({
  name: 'sliding-window-counter',
  code: 'C',
  windows: ({ limit, perUs }) => ({ units: 2 * limit - 1, leastUs: perUs, edges: false }),
  lua: 'sliding-window-counter',
  cells: () => 3,

  waitUs(cells, at, rule, cost, nowUs) {
    const { limit, perUs } = rule
    const startUs = windowAt(cells, at, rule, nowUs)
    const elapsedUs = Math.max(0, nowUs - startUs)
    const current = currentAt(cells, at, startUs)
    const previous = previousAt(cells, at, rule, startUs)
    if (current + cost + weighed(previous, elapsedUs, perUs) <= limit) return 0
    // It passes in this window, once enough of the previous one has slid out…
    if (current + cost <= limit) {
      return perUs - mulDiv(limit - current - cost, perUs, previous) - elapsedUs
    }
    // …or in the next window, once enough of this one has slid out.
    return perUs - elapsedUs + slideUs(current + cost - limit, perUs, current)
  },

  spend(cells, at, rule, cost, nowUs) {
    roll(cells, at, rule, nowUs)
    cells[at + 1] = Math.min(cells[at + 1] + cost, MOST_COUNT)
  },

  refund(cells, at, rule, cost, nowUs, spentUs) {
    roll(cells, at, rule, nowUs)
    const sinceUs = cells[at] - spentUs
    // Spends older than the previous window no longer count.
    const counted = sinceUs <= 0 ? at + 1 : at + 2
    if (sinceUs <= rule.perUs) cells[counted] = Math.max(0, cells[counted] - cost)
  },

  remaining: (cells, at, rule, nowUs) => Math.max(0, rule.limit - usedAt(cells, at, rule, nowUs)),

  freshAtUs(cells, at, rule) {
    if (cells[at + 1] > 0) return cells[at] + 2 * rule.perUs
    return cells[at + 2] > 0 ? cells[at] + rule.perUs : 0
  },

  // Windows of different lengths do not line up, so all units that count now become current ones.
  carry(cells, at, from, to, nowUs) {
    if (from.perUs === to.perUs) return
    const used = usedAt(cells, at, from, nowUs)
    cells[at] = nowUs - (nowUs % to.perUs)
    cells[at + 1] = used
    cells[at + 2] = 0
  },

  merge(cells, at, other, otherAt, rule) {
    const startUs = Math.max(cells[at], other[otherAt])
    const current = Math.max(currentAt(cells, at, startUs), currentAt(other, otherAt, startUs))
    const previous = Math.max(
      previousAt(cells, at, rule, startUs),
      previousAt(other, otherAt, rule, startUs),
    )
    cells[at] = startUs
    cells[at + 1] = current
    cells[at + 2] = previous
  },
})

/** Returns the start of the window at `nowUs`, or the state's own start if time has stepped back. */
function windowAt(cells: Float64Array, at: number, rule: Rule, nowUs: number): number {
  return Math.max(cells[at], nowUs - (nowUs % rule.perUs))
}

function currentAt(cells: Float64Array, at: number, startUs: number): number {
  return cells[at] === startUs ? cells[at + 1] : 0
}

function previousAt(cells: Float64Array, at: number, rule: Rule, startUs: number): number {
  if (cells[at] === startUs) return cells[at + 2]
  return cells[at] === startUs - rule.perUs ? cells[at + 1] : 0
}

/** Returns ceil(previous · (per − elapsed) / per). */
function weighed(previous: number, elapsedUs: number, perUs: number): number {
  return previous - mulDiv(previous, elapsedUs, perUs)
}

/** Returns ceil(units · per / of): the time until `units` of a window's `of` units have slid out. */
function slideUs(units: number, perUs: number, of: number): number {
  const product = units * perUs + of - 1
  // The product is nearly always small enough for plain doubles.
  if (product <= Number.MAX_SAFE_INTEGER) return Math.floor(product / of)
  return perUs - mulDiv(of - units, perUs, of)
}

function usedAt(cells: Float64Array, at: number, rule: Rule, nowUs: number): number {
  const startUs = windowAt(cells, at, rule, nowUs)
  const elapsedUs = Math.max(0, nowUs - startUs)
  const previous = previousAt(cells, at, rule, startUs)
  return currentAt(cells, at, startUs) + weighed(previous, elapsedUs, rule.perUs)
}

/** Advances the state to the window at `nowUs`. */
function roll(cells: Float64Array, at: number, rule: Rule, nowUs: number): void {
  const startUs = windowAt(cells, at, rule, nowUs)
  const current = currentAt(cells, at, startUs)
  cells[at + 2] = previousAt(cells, at, rule, startUs)
  cells[at + 1] = current
  cells[at] = startUs
}

/**
 * slidingWindowCounter weights the previous window by the part of it that the last `per` covers:
 * used = current + ceil(previous · (per − elapsed) / per). Windows are aligned to the clock. At most
 * 2 · limit − 1 units pass in any interval of `per`, and at most `limit` on even traffic.
 */
export const slidingWindowCounter = ruleFactory<RuleOptions, 'sliding-window-counter'>(algorithm)
