import type { Rule } from '../core/rule.ts'
import { type Floor, isOnlyFor, isRaised } from './floor.ts'
import type { Floors } from './floors.ts'
import { type LaidRules, type Layout, ruleIn } from './layout.ts'
import type { Lists } from './lists.ts'
import { growList, type Row, stateOf } from './row.ts'
import type { Rows } from './rows.ts'

/** Start is a scratch row: the initial state of a key without a row, or a copy for a peek. */
export interface Start extends Row {
  /** Whether the floor was applied: the key starts with units that evicted keys had used. */
  onFloor: boolean
  /** Sets all cells to 0. */
  empty(): void
  /** Makes it the initial state of the key that was just looked up. */
  prepare(set: LaidRules, nowUs: number): void
  /** Makes it a copy of the row at the cursor, carried over to these rules. */
  preview(set: LaidRules, nowUs: number): void
  /** Calls `begin` of every rule. Call before the first spend of a key that starts from the floor. */
  begin(set: LaidRules, nowUs: number): void
  /** Clears the cells without freeing their lists, which an inserted row owns now. */
  release(): void
  /** Carries cells that other rules wrote over to these rules, and returns the new tag. */
  adopt(set: LaidRules, cells: Float64Array, base: number, tag: number, nowUs: number): number
  /** Adapts to a changed layout. */
  resize(): void
}

/** createStart creates the scratch row of a table. */
export function createStart(layout: Layout, lists: Lists, floors: Floors, rows: Rows): Start {
  function adopt(
    set: LaidRules,
    cells: Float64Array,
    base: number,
    tag: number,
    nowUs: number,
  ): number {
    if (layout.fits(tag, set)) return tag
    const written = layout.written(tag)
    for (let i = 0; i < set.rules.length; i += 1) {
      const rule = set.rules[i]
      const column = set.columns[i]
      if (column < 0) continue
      const at = base + set.at[i]
      const before = ruleIn(written, column)
      if (before) {
        rule.algorithm.carry(stateOf(rule, cells, at, lists), at, before, rule, nowUs)
        continue
      }
      const floor = floors.of(rows.shard)
      if (floor?.raised(nowUs)) putOnFloor(floor, rule, column, cells, at, nowUs)
    }
    return layout.tagAfter(tag, set)
  }

  /** Applies the floor to an empty state of a rule. */
  function putOnFloor(
    floor: Floor,
    rule: Rule,
    column: number,
    cells: Float64Array,
    at: number,
    nowUs: number,
  ): void {
    if (rule.algorithm.grows) growList(rule, cells, at, lists, nowUs)
    const state = stateOf(rule, cells, at, lists)
    if (floor.apply(column, layout.columns[column], rule, state, at, nowUs)) start.onFloor = true
  }

  // Plain fields only: an accessor would switch the object to V8's slow dictionary mode.
  const start: Start = {
    cells: new Float64Array(layout.stride),
    base: 0,
    lists,
    onFloor: false,

    empty() {
      const { cells } = start
      dropLists(layout, lists, cells, 0)
      for (let i = 0; i < cells.length; i += 1) cells[i] = 0
      start.onFloor = false
    },

    prepare(set, nowUs) {
      start.empty()
      const floor = floors.of(rows.shard)
      if (floor === undefined) return
      if (set.only !== undefined && isOnlyFor(floor, set.only)) {
        // The usual case in a flood of keys: nothing has to be carried over.
        start.onFloor = isRaised(floor.only!, nowUs)
        if (start.onFloor) {
          set.only.algorithm.merge(start.cells, set.onlyAt, floor.only!.state, 0, set.only, nowUs)
        }
        return
      }
      if (!floor.raised(nowUs)) return
      for (let i = 0; i < set.rules.length; i += 1) {
        const column = set.columns[i]
        if (column >= 0) putOnFloor(floor, set.rules[i], column, start.cells, set.at[i], nowUs)
      }
    },

    preview(set, nowUs) {
      start.empty()
      const { cells } = start
      for (let i = 0; i < cells.length; i += 1) cells[i] = rows.cells[rows.base + i]
      for (const { grows, at } of layout.columns) {
        if (grows && cells[at] > 0) cells[at] = lists.add(lists.all[cells[at]].slice())
      }
      adopt(set, cells, 0, rows.tag, nowUs)
    },

    begin(set, nowUs) {
      for (let i = 0; i < set.rules.length; i += 1) {
        const rule = set.rules[i]
        const at = set.at[i]
        rule.algorithm.begin(stateOf(rule, start.cells, at, lists), at, rule, nowUs)
      }
    },

    release: () => void start.cells.fill(0),
    adopt,
    resize() {
      start.cells = new Float64Array(layout.stride)
    },
  }
  return start
}

/** dropLists frees the lists of a row. */
export function dropLists(
  { columns }: Pick<Layout, 'columns'>,
  lists: Lists,
  cells: Float64Array,
  base: number,
): void {
  for (let i = 0; i < columns.length; i += 1) {
    if (columns[i].grows) lists.remove(cells[base + columns[i].at])
  }
}
