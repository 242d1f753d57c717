// Longer than our files are meant to be: all that happens to a row, in the order of a decision.
import type { Rule } from '../core/rule.ts'
import type { Table } from '../stores/store.ts'
import { type Blocks, createBlocks } from './blocks.ts'
import { type Floor, type FloorEntry, isOnlyFor, isRaised } from './floor.ts'
import { createFloors, type Floors } from './floors.ts'
import { type Column, createLayout, type LaidRules, type Layout, ruleIn } from './layout.ts'
import { createLists } from './lists.ts'
import {
  growList,
  nextOf,
  readRest,
  readWaits,
  refundRow,
  spendRow,
  stateOf,
  waitOf,
} from './row.ts'
import type { RowCare, Rows } from './rows.ts'
import { unlistable, unsupported } from './store-errors.ts'

/** TableParts are what a table keeps besides rows; by default in this thread's memory. */
export interface TableParts {
  readonly layout?: Layout
  readonly blocks?: Blocks
  readonly floors?: Floors
}

/**
 * createTable is the table of every store that answers at once: it decides on rows, wherever
 * they are kept. `makeRows` is given what rows need to know to make way for others.
 */
export function createTable(
  makeRows: (care: RowCare) => Rows,
  readUs: () => number,
  parts: TableParts = {},
): Table<LaidRules> {
  const { layout = createLayout(), blocks = createBlocks() } = parts
  const lists = createLists()
  const rows = makeRows({ freshAtUs, evicted, dropped: (cells, base) => dropLists(cells, base) })
  const floors = parts.floors ?? createFloors(rows.shards, layout, lists)
  /** A row for keys that have none: what they would start from; and whether that is the floor. */
  let start = new Float64Array(layout.stride)
  let onFloor = false
  /** The single rule that was made ready last: rows with its tag take a short way. */
  let usual: LaidRules | undefined
  let evictions = 0
  let floored = 0

  function blockedUs(key: string, nowUs: number): number {
    return blocks.leftUs(rows.idOf(key), nowUs)
  }

  /** When a row is fresh: the latest of the columns that were ever written. */
  function freshAtUs(cells: Float64Array, base: number, tag: number): number {
    if (usual !== undefined && tag === usual.tag) {
      const rule = usual.only!
      return someTime(rule.algorithm.freshAtUs(cells, base + usual.onlyAt, rule))
    }
    const written = layout.written(tag)
    let latest = 0
    for (let i = 0; i < written.length; i += 1) {
      const { column, rule } = written[i]
      const at = base + layout.columns[column].at
      const freshUs = someTime(rule.algorithm.freshAtUs(stateOf(rule, cells, at, lists), at, rule))
      if (freshUs > latest) latest = freshUs
    }
    return latest
  }

  function evicted(
    cells: Float64Array,
    base: number,
    tag: number,
    shard: number,
    nowUs: number,
  ): void {
    evictions += 1
    if (usual !== undefined && tag === usual.tag) {
      const rule = usual.only!
      const floor = floors.of(shard)
      if (floor !== undefined && isOnlyFor(floor, rule) && isRaised(floor.only!, nowUs)) {
        rule.algorithm.merge(floor.only!.state, 0, cells, base + usual.onlyAt, rule, nowUs)
        return
      }
    }
    floors.raise(shard, cells, base, tag, nowUs)
  }

  function dropLists(cells: Float64Array, base: number, columns = layout.columns): void {
    for (let i = 0; i < columns.length; i += 1) {
      if (columns[i].grows) lists.remove(cells[base + columns[i].at])
    }
  }

  /** Rewrites cells that were written for other rules, and gives their new tag. */
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
    if (floor.apply(column, layout.columns[column], rule, state, at, nowUs)) onFloor = true
  }

  /** Moves to the key's row, whatever it was written for; false when it has none. */
  function seek(key: string): boolean {
    return rows.aim(key) || rows.find(key)
  }

  /** Moves to the key's row, written for these rules; false when it has none. */
  function find(set: LaidRules, key: string, nowUs: number): boolean {
    if (!seek(key)) return false
    if (rows.tag !== set.tag) adoptRow(set, nowUs)
    return true
  }

  function adoptRow(set: LaidRules, nowUs: number): void {
    const tag = adopt(set, rows.cells, rows.base, rows.tag, nowUs)
    if (tag !== rows.tag) rows.retag(tag)
  }

  /** Prepares `start` for a key that has no row. */
  function prepareStart(set: LaidRules, nowUs: number): void {
    emptyStart()
    const floor = floors.of(rows.shard)
    if (!floor?.raised(nowUs)) return
    for (let i = 0; i < set.rules.length; i += 1) {
      const column = set.columns[i]
      if (column >= 0) putOnFloor(floor, set.rules[i], column, start, set.at[i], nowUs)
    }
  }

  function emptyStart(): void {
    dropLists(start, 0)
    for (let i = 0; i < start.length; i += 1) start[i] = 0
    onFloor = false
  }

  /** Looks at the key's row as if it were written for these rules, in `start`. */
  function previewStart(set: LaidRules, nowUs: number): void {
    emptyStart()
    for (let i = 0; i < start.length; i += 1) start[i] = rows.cells[rows.base + i]
    for (const { grows, at } of layout.columns) {
      if (grows && start[at] > 0) start[at] = lists.add(lists.all[start[at]].slice())
    }
    adopt(set, start, 0, rows.tag, nowUs)
  }

  /** Gives the key that was just looked for the row that `start` holds. */
  function insert(set: LaidRules, key: string, nowUs: number): void {
    if (onFloor) {
      floored += 1
      for (let i = 0; i < set.rules.length; i += 1) {
        const rule = set.rules[i]
        rule.algorithm.begin(stateOf(rule, start, set.at[i], lists), set.at[i], rule, nowUs)
      }
    }
    insertStart(key, set.tag, nowUs)
  }

  function insertStart(key: string, tag: number, nowUs: number): void {
    rows.insert(key, start, tag, nowUs, onFloor)
    // Its lists are the row's now.
    for (let i = 0; i < start.length; i += 1) start[i] = 0
  }

  function use(rules: readonly Rule[]): LaidRules {
    const list = rows.holdsLists ? undefined : rules.find((rule) => rule.algorithm.grows)
    if (list) throw unsupported(list)
    const set = layout.use(rules, (before: readonly Column[]) => {
      dropLists(start, 0, before)
      start = new Float64Array(layout.stride)
      rows.move(before, layout.columns)
    })
    if (set.only) usual = set
    return set
  }

  /** `allow` for a key without row, where there is one rule and a floor for nothing else, if any. */
  function allowNewcomer(
    set: LaidRules,
    rule: Rule,
    key: string,
    cost: number,
    floor: FloorEntry | undefined,
    nowUs: number,
  ): boolean {
    emptyStart()
    if (floor !== undefined && isRaised(floor, nowUs)) {
      rule.algorithm.merge(start, set.onlyAt, floor.state, 0, rule, nowUs)
      rule.algorithm.begin(start, set.onlyAt, rule, nowUs)
      onFloor = true
    }
    if (rule.algorithm.take(start, set.onlyAt, rule, cost, nowUs) > 0) return false
    if (onFloor) floored += 1
    insertStart(key, set.tag, nowUs)
    return true
  }

  return {
    nowUs: readUs,
    use,

    // Long on purpose: V8 inlines no function of more than 460 bytecodes (this has about 490, see
    // --print-bytecode), so it is compiled as one piece with all that is short in it.
    allow(set, key, cost, atUs) {
      const row = rows
      const isThere = row.aim(key)
      // With the plus V8 knows that it is a number, and does not box it.
      const nowUs = atUs === undefined ? readUs() : +atUs
      if (blocks.size > 0 && blockedUs(key, nowUs) > 0) {
        // What the floor holds for it goes over to these rules, as a row does.
        if (!find(set, key, nowUs)) prepareStart(set, nowUs)
        return false
      }
      const known = isThere || row.find(key)
      const rule = set.only
      if (known) {
        if (row.tag !== set.tag) adoptRow(set, nowUs)
        if (rule !== undefined) {
          return rule.algorithm.take(row.cells, row.base + set.onlyAt, rule, cost, nowUs) === 0
        }
        if (waitOf(set, row.cells, row.base, lists, cost, nowUs) > 0) return false
        if (cost > 0) spendRow(set, row.cells, row.base, lists, cost, nowUs)
        return true
      }
      const floor = floors.of(row.shard)
      if (rule !== undefined && cost > 0 && !set.stateless && (!floor || isOnlyFor(floor, rule))) {
        return allowNewcomer(set, rule, key, cost, floor?.only, nowUs)
      }
      prepareStart(set, nowUs)
      if (waitOf(set, start, 0, lists, cost, nowUs) > 0) return false
      if (cost === 0 || set.stateless) return true
      insert(set, key, nowUs)
      spendRow(set, row.cells, row.base, lists, cost, nowUs)
      return true
    },

    // Long on purpose as well.
    decide(set, key, cost, spend, atUs) {
      const { figures } = set
      const isThere = rows.aim(key)
      const nowUs = atUs === undefined ? readUs() : +atUs
      figures.blockedUs = blocks.size > 0 ? blockedUs(key, nowUs) : 0
      const known = isThere || rows.find(key)
      let cells: Float64Array = start
      let base = 0
      if (!known) {
        prepareStart(set, nowUs)
      } else if (!spend && rows.tag !== set.tag) {
        previewStart(set, nowUs)
      } else {
        if (rows.tag !== set.tag) adoptRow(set, nowUs)
        cells = rows.cells
        base = rows.base
        const rule = set.only
        if (rule !== undefined && spend && !set.delays && figures.blockedUs === 0) {
          const at = base + set.onlyAt
          const wait = rule.algorithm.take(cells, at, rule, cost, nowUs)
          const left = rule.algorithm.remaining(cells, at, rule, nowUs)
          figures.waitUs[0] = wait
          figures.remaining[0] = left
          // A refusal of just one unit too many knows it already.
          figures.nextUs[0] =
            wait > 0 && cost === left + 1 ? wait : nextOf(rule, cells, at, left, nowUs)
          const freshUs = rule.algorithm.freshAtUs(cells, at, rule)
          figures.resetUs[0] = freshUs > nowUs ? freshUs - nowUs : 0
          return
        }
      }
      const passes = readWaits(set, cells, base, lists, cost, nowUs) === 0
      if (spend && passes && figures.blockedUs === 0 && cost > 0 && !set.stateless) {
        if (!known) insert(set, key, nowUs)
        cells = rows.cells
        base = rows.base
        spendRow(set, cells, base, lists, cost, nowUs)
      }
      readRest(set, cells, base, lists, nowUs)
    },

    charge(set, key, cost, nowUs) {
      if (cost === 0 || set.stateless) return
      if (!find(set, key, nowUs)) {
        prepareStart(set, nowUs)
        insert(set, key, nowUs)
      }
      spendRow(set, rows.cells, rows.base, lists, cost, nowUs)
    },

    refund(set, key, cost, nowUs) {
      if (find(set, key, nowUs)) refundRow(set, rows.cells, rows.base, lists, cost, nowUs)
      else prepareStart(set, nowUs)
    },

    block: (key, untilUs, nowUs) => blocks.set(rows.idOf(key), untilUs, nowUs),
    unblock: (key) => blocks.delete(rows.idOf(key)),

    reset(key, nowUs) {
      blocks.delete(rows.idOf(key))
      if (seek(key)) rows.remove()
      // Unknown, it would start from the floor: give it a row that is known to be fresh.
      if (seek(key) || !floors.of(rows.shard)?.raised(nowUs)) return
      emptyStart()
      insertStart(key, layout.fullTag(), nowUs)
    },

    rulesOf(key) {
      return seek(key) ? layout.written(rows.tag).map(({ rule }) => rule) : []
    },

    clear() {
      rows.clear()
      blocks.clear()
      floors.clear()
      lists.clear()
      start.fill(0)
    },

    keys(nowUs) {
      if (!rows.holdsKeys) throw unlistable()
      const keys: string[] = []
      eachInUse(nowUs, () => keys.push(rows.id()))
      return [...keys, ...onlyBlocked(nowUs)]
    },
    size(nowUs) {
      let count = onlyBlocked(nowUs).length
      eachInUse(nowUs, () => {
        count += 1
      })
      return count
    },
    stats: () => ({
      rows: rows.size,
      maxKeys: rows.maxRows,
      blocked: blocks.size,
      evictions,
      floored,
    }),
  }

  /** Visits the rows of keys that are blocked or not fresh. */
  function eachInUse(nowUs: number, visit: () => void): void {
    rows.each(() => {
      const inUse = freshAtUs(rows.cells, rows.base, rows.tag) > nowUs
      if (inUse || (blocks.size > 0 && blocks.leftUs(rows.id(), nowUs) > 0)) visit()
    })
  }

  /** The ids of blocked keys that have no row. */
  function onlyBlocked(nowUs: number): string[] {
    return [...blocks.keys()].filter((id) => blocks.leftUs(id, nowUs) > 0 && !rows.hasId(id))
  }
}

/** What an algorithm says of freshness, as a time: one of the user's own may say Infinity, or NaN. */
function someTime(us: number): number {
  return us < Number.MAX_SAFE_INTEGER ? us : Number.MAX_SAFE_INTEGER
}
