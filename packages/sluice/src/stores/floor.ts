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
  const entries: Entry[] = []

  /** A list is not copied but left to `merge`, which keeps the gist of it. */
  function copyOf(rule: Rule, state: Float64Array, at: number, nowUs: number): Float64Array {
    if (rule.algorithm.grows) return rule.algorithm.grow(emptyList, rule, nowUs)
    return state.slice(at, at + rule.algorithm.cells(rule))
  }

  return {
    raised(nowUs) {
      for (let i = entries.length - 1; i >= 0; i -= 1) {
        const { rule, state } = entries[i]
        if (rule.algorithm.freshAtUs(state, 0, rule) <= nowUs) entries.splice(i, 1)
      }
      return entries.length > 0
    },
    raise(column, rule, state, at, nowUs) {
      this.raised(nowUs)
      for (let i = 0; i < entries.length; i += 1) {
        if (entries[i].column !== column || entries[i].rule !== rule) continue
        rule.algorithm.merge(entries[i].state, 0, state, at, rule, nowUs)
        return
      }
      const copy = copyOf(rule, state, at, nowUs)
      if (rule.algorithm.grows) rule.algorithm.merge(copy, 0, state, at, rule, nowUs)
      entries.push({ column, rule, state: copy })
    },
    apply(column, { cells }, rule, state, at, nowUs) {
      let harder = false
      for (let i = 0; i < entries.length; i += 1) {
        const entry = entries[i]
        if (entry.column !== column) continue
        let { state: floor } = entry
        if (entry.rule !== rule) {
          floor = new Float64Array(Math.max(cells, entry.state.length))
          floor.set(entry.state)
          rule.algorithm.carry(floor, 0, entry.rule, rule, nowUs)
        }
        rule.algorithm.merge(state, at, floor, 0, rule, nowUs)
        harder = true
      }
      return harder
    },
    clear() {
      entries.length = 0
    },
  }
}
