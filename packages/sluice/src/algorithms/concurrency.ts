import { completeAlgorithm } from '../core/algorithm.ts'
import type { Duration } from '../core/duration.ts'
import { type Rule, type RuleOptions, ruleFactory } from '../core/rule.ts'

/** ConcurrencyOptions are the options of `concurrency`. */
export interface ConcurrencyOptions extends Omit<RuleOptions, 'per'> {
  /** Units held at once: a whole number from 1 to 10,000,000. */
  readonly limit: number
  /**
   * The longest that a permit holds its units: a duration from 1 ms to 400 days. If a holder dies,
   * its units come back between `hold` and 1.25 · `hold` after they were taken.
   */
  readonly hold: Duration
}

/** A hold lasts at least this many slots, whenever in a slot it begins. */
const SLOTS = 4
const RING = SLOTS + 1

/** The most units that a key can hold, by any rule. */
const MOST_HELD = 10_000_000

/** Cells: the row's generation, the newest slot, and the units that were taken in each slot. */
const NEWEST = 1
const UNITS = 2

const algorithm = completeAlgorithm({
  name: 'concurrency',
  code: 'H',
  span: 'hold',
  mostLimit: MOST_HELD,
  mostLimitRemedy: 'It counts units held at once; for more units in a time, use tokenBucket.',
  holds: true,
  lua: 'concurrency',
  cells: () => UNITS + RING,

  waitUs(cells, at, rule, cost, nowUs) {
    const newest = newestAt(cells, at, rule, nowUs)
    let over = heldIn(cells, at, newest) + cost - rule.limit
    for (let slot = newest - SLOTS; over > 0 && slot <= cells[at + NEWEST]; slot += 1) {
      over -= cells[at + UNITS + (slot % RING)]
      if (over <= 0) return endOf(slot, rule) - nowUs
    }
    return 0
  },

  spend(cells, at, rule, cost, nowUs) {
    const newest = newestAt(cells, at, rule, nowUs)
    turn(cells, at, newest)
    cells[at + UNITS + (newest % RING)] += cost
  },

  release(cells, at, rule, cost, slot, nowUs) {
    const newest = cells[at + NEWEST]
    const units = at + UNITS + (slot % RING)
    const isLost = slot > newest || slot < newest - SLOTS || cells[units] < cost
    if (isLost || nowUs >= endOf(slot, rule)) return false
    cells[units] -= cost
    return true
  },

  holdAt: (cells, at) => cells[at + NEWEST],

  remaining(cells, at, rule, nowUs) {
    return Math.max(0, rule.limit - heldIn(cells, at, newestAt(cells, at, rule, nowUs)))
  },

  freshAtUs(cells, at, rule) {
    for (let slot = cells[at + NEWEST]; slot > cells[at + NEWEST] - RING && slot >= 0; slot -= 1) {
      if (cells[at + UNITS + (slot % RING)] > 0) return endOf(slot, rule)
    }
    return 0
  },

  // Each hold keeps its end, rounded up to a slot of the new rule, and lasts at most the new `hold`
  // from now. Permits name the old slot, so they can no longer release it.
  carry(cells, at, from, to, nowUs) {
    if (from.perUs === to.perUs) return
    const old = cells.slice(at, at + UNITS + RING)
    const latestUs = Math.max(nowUs, old[NEWEST] * slotUs(from))
    const newest = Math.floor(latestUs / slotUs(to))
    const oldest = Math.max(0, newest - SLOTS)
    cells.fill(0, at, at + UNITS + RING)
    cells[at + NEWEST] = newest
    const first = Math.max(0, newestAt(old, 0, from, nowUs) - SLOTS)
    for (let slot = first; slot <= old[NEWEST]; slot += 1) {
      const ends = Math.ceil(endOf(slot, from) / slotUs(to)) - RING
      const i = at + UNITS + (Math.min(Math.max(ends, oldest), newest) % RING)
      cells[i] = Math.min(cells[i] + old[UNITS + (slot % RING)], MOST_HELD)
    }
  },

  merge(cells, at, other, otherAt) {
    const newest = Math.max(cells[at + NEWEST], other[otherAt + NEWEST])
    turn(cells, at, newest)
    const first = Math.max(0, newest - SLOTS)
    for (let slot = first; slot <= other[otherAt + NEWEST]; slot += 1) {
      const i = UNITS + (slot % RING)
      cells[at + i] = Math.max(cells[at + i], other[otherAt + i])
    }
  },

  // A holder may release at any time, so no wait can be promised.
  lineUs: () => 0,
})

/** Returns the length of a slot, rounded up: SLOTS of them are no shorter than the hold. */
function slotUs(rule: Rule): number {
  return Math.ceil(rule.perUs / SLOTS)
}

/** Returns the first microsecond at which units taken in a slot no longer count. */
function endOf(slot: number, rule: Rule): number {
  return (slot + RING) * slotUs(rule)
}

/** Returns the slot at `nowUs`, or the state's newest slot if time has stepped back. */
function newestAt(cells: Float64Array, at: number, rule: Rule, nowUs: number): number {
  return Math.max(cells[at + NEWEST], Math.floor(nowUs / slotUs(rule)))
}

/** Returns the units held when `newest` is the newest slot. */
function heldIn(cells: Float64Array, at: number, newest: number): number {
  let held = 0
  for (let slot = Math.max(0, newest - SLOTS); slot <= cells[at + NEWEST]; slot += 1) {
    held += cells[at + UNITS + (slot % RING)]
  }
  return held
}

/** Advances the ring to slot `newest` and clears slots more than SLOTS before it. */
function turn(cells: Float64Array, at: number, newest: number): void {
  const first = Math.max(cells[at + NEWEST] + 1, newest - SLOTS)
  for (let slot = first; slot <= newest; slot += 1) cells[at + UNITS + (slot % RING)] = 0
  cells[at + NEWEST] = newest
}

/**
 * concurrency admits `limit` units at once. A permit from `acquire` holds its units until the caller
 * releases it, and for about `hold` at most, so a holder that dies cannot leak units.
 */
export const concurrency = ruleFactory<ConcurrencyOptions, 'concurrency'>(algorithm)
