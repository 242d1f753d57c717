import type { Rule } from '../core/rule.ts'
import { type Floor, isOnlyFor, isRaised } from './floor.ts'
import type { Floors } from './floors.ts'
import { type LaidRules, type Layout, ruleIn } from './layout.ts'
import type { Lists } from './lists.ts'
import { growList, type Row, stateOf } from './row.ts'
import type { Rows } from './rows.ts'

/** Start is the row that a key without one starts from, and a place to look at rows without writing. */
export interface Start extends Row {
  /** Whether the floor is in it: then the key starts with what evicted keys had used. */
  onFloor: boolean
  /** Makes it all 0. */
  empty(): void
  /** Makes it what the key that was just looked for would start from. */
  prepare(set: LaidRules, nowUs: number): void
  /** Makes it a copy of the row at the cursor, as if that were written for these rules. */
  preview(set: LaidRules, nowUs: number): void
  /** The key is about to spend for the first time. */
  begin(set: LaidRules, nowUs: number): void
  /** What is in it belongs to a row now. */
  release(): void
  /** Rewrites cells that were written for other rules, and gives their new tag. */
  adopt(set: LaidRules, cells: Float64Array, base: number, tag: number, nowUs: number): number
  /** Makes room for the rows of a layout that has changed. */
  resize(): void
}

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

  /** Makes an empty state of a rule as hard as the floor. */
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

  // Plain fields only: an accessor would turn the object into a slow one.
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
        // As in nearly every flood: nothing has to be carried over.
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

/** dropLists gives back the lists of a row. */
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
