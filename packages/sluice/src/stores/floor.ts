import type { Rule } from '../rule.ts'
import type { Column } from './layout.ts'

/**
 * Floor keeps the promise that eviction never forgives. When a state in use has to go, the floor
 * becomes at least as hard as it; a key that the table does not know starts from the floor. So an
 * evicted key comes back with at least what it had used, whatever was rotated through since. The
 * floor refills like any state, and costs nothing once it is fresh.
 */
export interface Floor {
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

interface Entry {
  readonly column: number
  /** The figures the state is kept in: it refills at the rate of the key that had it. */
  readonly rule: Rule
  readonly state: Float64Array
}

export function createFloor(emptyList: Float64Array): Floor {
  let entries: Entry[] = []

  /** A list is not copied but left to `merge`, which keeps the gist of it. */
  function copyOf(rule: Rule, state: Float64Array, at: number, nowUs: number): Float64Array {
    if (rule.algorithm.grows) return rule.algorithm.grow(emptyList, rule, nowUs)
    return state.slice(at, at + rule.algorithm.cells(rule))
  }

  return {
    raised(nowUs) {
      if (entries.length === 0) return false
      entries = entries.filter(
        ({ rule, state }) => rule.algorithm.freshAtUs(state, 0, rule) > nowUs,
      )
      return entries.length > 0
    },
    raise(column, rule, state, at, nowUs) {
      this.raised(nowUs)
      let entry = entries.find((e) => e.column === column && e.rule === rule)
      if (!entry) {
        entry = { column, rule, state: copyOf(rule, state, at, nowUs) }
        entries.push(entry)
      }
      rule.algorithm.merge(entry.state, 0, state, at, rule, nowUs)
    },
    apply(column, { cells }, rule, state, at, nowUs) {
      let harder = false
      for (const entry of entries) {
        if (entry.column !== column) continue
        const copy = new Float64Array(Math.max(cells, entry.state.length))
        copy.set(entry.state)
        if (entry.rule !== rule) entry.rule.algorithm.carry(copy, 0, entry.rule, rule, nowUs)
        rule.algorithm.merge(state, at, copy, 0, rule, nowUs)
        harder = true
      }
      return harder
    },
    clear() {
      entries = []
    },
  }
}
