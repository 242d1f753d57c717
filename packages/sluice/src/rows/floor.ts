import type { Rule } from '../core/rule.ts'
import type { Column } from './layout.ts'

/**
 * Floor keeps the promise that eviction never forgives. When a state in use has to go, the floor
 * becomes at least as hard as it; a key that the table does not know starts from the floor. So an
 * evicted key comes back with at least what it had used, whatever was rotated through since. The
 * floor refills like any state, and costs nothing once it is fresh.
 */
export interface Floor {
  /** Its entry, if it has just one: the fast path. */
  only: FloorEntry | undefined
  /** Whether anything was raised that has not refilled yet. */
  raised(nowUs: number): boolean
  /** Makes the floor of a column at least as hard as a state that is about to go. */
  raise(column: number, rule: Rule, state: Float64Array, at: number, nowUs: number): void
  /** Where it is raised: makes an empty state of `rule` as hard as it; true if that did anything. */
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
  /** The figures the state is kept in: it refills at the rate of the key that had it. */
  readonly rule: Rule
  readonly state: Float64Array
}

/** isRaised tells whether an entry has not refilled yet. */
export function isRaised({ rule, state }: FloorEntry, nowUs: number): boolean {
  return rule.algorithm.freshAtUs(state, 0, rule) > nowUs
}

/** isOnlyFor tells whether a floor was raised for this rule, and for no other. */
export function isOnlyFor({ only }: Floor, rule: Rule): boolean {
  return only !== undefined && only.rule === rule
}

/** Whether two rules have the same figures: nearly always they are the same one. */
function isLike(one: Rule, other: Rule): boolean {
  return one === other || one.text === other.text
}

/** A copy of an entry, carried over to another rule. */
function carried({ rule: from, state }: FloorEntry, width: Column, rule: Rule, nowUs: number) {
  const copy = new Float64Array(Math.max(width.cells, state.length))
  copy.set(state)
  rule.algorithm.carry(copy, 0, from, rule, nowUs)
  return copy
}

/** createFloor keeps its entries in the array it is given. */
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
   * Carries the units of other figures over to `rule`, and keeps the outcome: what a key was told
   * must hold, though it has no row that would remember. Those of slower rules are carried over at
   * every look, since the key that had them may come at any time.
   */
  function carryOver(column: number, width: Column, rule: Rule, nowUs: number): void {
    for (let i = entries.length - 1; i >= 0; i -= 1) {
      const entry = entries[i]
      if (entry.column !== column || isLike(entry.rule, rule)) continue
      raise(column, rule, carried(entry, width, rule, nowUs), 0, nowUs)
    }
  }

  /**
   * The same for units that are held. Their end is rounded up when they are carried over, so the outcome is
   * not kept: carried to and fro, it would never come.
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
