import type { Rule } from '../core/rule.ts'
import type { Column } from './layout.ts'

/**
 * Floor keeps the promise that eviction never forgives. When a table evicts a row in use, the floor
 * becomes at least as strict as that row. Unknown keys start from the floor, so an evicted key comes
 * back with at least the units that it had used. The floor refills like any state and has no effect
 * once it is fresh.
 */
export interface Floor {
  /** The entry, if there is exactly one: the fast path. */
  only: FloorEntry | undefined
  /** Tells whether any entry has not refilled yet, and drops those that have. */
  raised(nowUs: number): boolean
  /** Makes the floor of a column at least as strict as a state that is being evicted. */
  raise(column: number, rule: Rule, state: Float64Array, at: number, nowUs: number): void
  /** Makes an empty state of `rule` as strict as the floor; false if no entry applies. */
  apply(
    column: number,
    width: Column,
    rule: Rule,
    state: Float64Array,
    at: number,
    nowUs: number,
  ): boolean
  clear(): void
}

/** FloorEntry is what one column of a floor is raised to. */
export interface FloorEntry {
  readonly column: number
  /** The rule of the evicted keys: the state refills at its rate. */
  readonly rule: Rule
  readonly state: Float64Array
}

/** isRaised tells whether an entry has not refilled yet. */
export function isRaised({ rule, state }: FloorEntry, nowUs: number): boolean {
  return rule.algorithm.freshAtUs(state, 0, rule) > nowUs
}

/** isOnlyFor tells whether a floor was raised for this rule alone. */
export function isOnlyFor({ only }: Floor, rule: Rule): boolean {
  return only !== undefined && only.rule === rule
}

/** Tells whether two rules have the same parameters; usually they are the same object. */
function isLike(one: Rule, other: Rule): boolean {
  return one === other || one.text === other.text
}

/** Returns a copy of an entry's state, carried over to another rule. */
function carried({ rule: from, state }: FloorEntry, width: Column, rule: Rule, nowUs: number) {
  const copy = new Float64Array(Math.max(width.cells, state.length))
  copy.set(state)
  rule.algorithm.carry(copy, 0, from, rule, nowUs)
  return copy
}

/** createFloor creates a floor that keeps its entries in the given array. */
export function createFloor(emptyList: Float64Array, entries: FloorEntry[] = []): Floor {
  function note(): void {
    floor.only = entries.length === 1 ? entries[0] : undefined
  }

  function raised(nowUs: number): boolean {
    for (let i = entries.length - 1; i >= 0; i -= 1) {
      if (!isRaised(entries[i], nowUs)) entries.splice(i, 1)
    }
    note()
    return entries.length > 0
  }

  function entryFor(column: number, rule: Rule): FloorEntry | undefined {
    for (let i = 0; i < entries.length; i += 1) {
      if (entries[i].column === column && isLike(entries[i].rule, rule)) return entries[i]
    }
    return undefined
  }

  function raise(column: number, rule: Rule, state: Float64Array, at: number, nowUs: number): void {
    let entry = entryFor(column, rule)
    if (!entry) {
      const empty = rule.algorithm.grows
        ? rule.algorithm.grow(emptyList, rule, nowUs)
        : new Float64Array(rule.algorithm.cells(rule))
      entry = { column, rule, state: empty }
      entries.push(entry)
      note()
    }
    rule.algorithm.merge(entry.state, 0, state, at, rule, nowUs)
  }

  /**
   * Carries entries of other limits over to `rule`, and keeps the result as an entry: an evicted key
   * has no row, yet the wait it was told must hold. Repeats at every look-up, since the evicted key
   * may return at any time.
   */
  function carryOver(column: number, width: Column, rule: Rule, nowUs: number): void {
    for (let i = entries.length - 1; i >= 0; i -= 1) {
      const entry = entries[i]
      if (entry.column !== column || isLike(entry.rule, rule)) continue
      raise(column, rule, carried(entry, width, rule, nowUs), 0, nowUs)
    }
  }

  /**
   * Does what `apply` does for rules that hold units. Carrying over rounds the end of a hold up, so
   * the result is not kept: carried back and forth, holds would never end.
   */
  function applyHeld(
    column: number,
    width: Column,
    rule: Rule,
    state: Float64Array,
    at: number,
    nowUs: number,
  ): boolean {
    const own = entries.filter((entry) => entry.column === column)
    for (const entry of own) {
      const isOther = !isLike(entry.rule, rule)
      const held = isOther ? carried(entry, width, rule, nowUs) : entry.state
      rule.algorithm.merge(state, at, held, 0, rule, nowUs)
    }
    return own.length > 0
  }

  const floor: Floor = {
    only: entries.length === 1 ? entries[0] : undefined,
    raised,
    raise(column, rule, state, at, nowUs) {
      raised(nowUs)
      raise(column, rule, state, at, nowUs)
    },
    apply(column, width, rule, state, at, nowUs) {
      if (rule.algorithm.holds) return applyHeld(column, width, rule, state, at, nowUs)
      carryOver(column, width, rule, nowUs)
      const entry = entryFor(column, rule)
      if (entry) rule.algorithm.merge(state, at, entry.state, 0, rule, nowUs)
      return entry !== undefined
    },
    clear() {
      entries.length = 0
      note()
    },
  }
  return floor
}
