// The functions of a table in the order of a decision. It is longer than others: V8 compiles allow
// and decide in one piece with what they call, which a measurement in ADR 0004 shows.
import { checkedWait } from '../core/algorithm.ts'
import type { Rule } from '../core/rule.ts'
import type { Table } from '../stores/store.ts'
import { type Blocks, createBlocks } from './blocks.ts'
import { type FloorEntry, isOnlyFor, isRaised } from './floor.ts'
import { createFloors, type Floors } from './floors.ts'
import { type Column, createLayout, type LaidRules, type Layout } from './layout.ts'
import { createLists } from './lists.ts'
import { nextOf, readRest, readWaits, refundRow, spendRow, waitOf } from './row.ts'
import type { RowCare, Rows } from './rows.ts'
import { createStart, dropLists } from './start.ts'
import { unlistable, unsupported } from './store-errors.ts'
import { blockedOnly, createUpkeep, eachInUse } from './upkeep.ts'

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
  const upkeep = createUpkeep(layout, lists, () => floors)
  const rows = makeRows(upkeep)
  const floors = parts.floors ?? createFloors(rows.shards, layout, lists)
  const start = createStart(layout, lists, floors, rows)
  let floored = 0

  function blockedUs(key: string, nowUs: number): number {
    return blocks.leftUs(rows.idOf(key), nowUs)
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
    const tag = start.adopt(set, rows.cells, rows.base, rows.tag, nowUs)
    if (tag !== rows.tag) rows.retag(tag)
  }

  /** Gives the key that was just looked for the row that `start` holds. */
  function insert(set: LaidRules, key: string, nowUs: number): void {
    if (start.onFloor) {
      floored += 1
      start.begin(set, nowUs)
    }
    insertStart(key, set.tag, nowUs)
  }

  function insertStart(key: string, tag: number, nowUs: number): void {
    rows.insert(key, start.cells, tag, nowUs, start.onFloor)
    start.release()
  }

  function use(rules: readonly Rule[]): LaidRules {
    const list = rows.holdsLists ? undefined : rules.find((rule) => rule.algorithm.grows)
    if (list) throw unsupported(list)
    const set = layout.use(rules, (before: readonly Column[]) => {
      dropLists({ columns: before }, lists, start.cells, 0)
      start.resize()
      rows.move(before, layout.columns)
    })
    if (set.only) upkeep.usual = set
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
    start.empty()
    const { cells } = start
    const at = set.onlyAt
    if (floor === undefined || !isRaised(floor, nowUs)) {
      if (rule.algorithm.take(cells, at, rule, cost, nowUs) > 0) return false
    } else {
      rule.algorithm.merge(cells, at, floor.state, 0, rule, nowUs)
      start.onFloor = true
      if (checkedWait(rule.algorithm.waitUs(cells, at, rule, cost, nowUs), rule) > 0) return false
      rule.algorithm.begin(cells, at, rule, nowUs)
      rule.algorithm.spend(cells, at, rule, cost, nowUs)
      floored += 1
    }
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
        if (!find(set, key, nowUs)) start.prepare(set, nowUs)
        return false
      }
      const known = isThere || row.find(key)
      const rule = set.only
      if (known) {
        if (row.tag !== set.tag) adoptRow(set, nowUs)
        if (rule !== undefined) {
          return rule.algorithm.take(row.cells, row.base + set.onlyAt, rule, cost, nowUs) <= 0
        }
        if (waitOf(set, row.cells, row.base, lists, cost, nowUs) > 0) return false
        if (cost > 0) spendRow(set, row.cells, row.base, lists, cost, nowUs)
        return true
      }
      const floor = floors.of(row.shard)
      if (rule !== undefined && cost > 0 && !set.stateless && (!floor || isOnlyFor(floor, rule))) {
        return allowNewcomer(set, rule, key, cost, floor?.only, nowUs)
      }
      start.prepare(set, nowUs)
      if (waitOf(set, start.cells, 0, lists, cost, nowUs) > 0) return false
      if (cost === 0 || set.stateless) return true
      insert(set, key, nowUs)
      spendRow(set, row.cells, row.base, lists, cost, nowUs)
      return true
    },

    // Long on purpose as well.
    decide(set, key, cost, spend, atUs) {
      const { readings } = set
      const isThere = rows.aim(key)
      const nowUs = atUs === undefined ? readUs() : +atUs
      readings.blockedUs = blocks.size > 0 ? blockedUs(key, nowUs) : 0
      const known = isThere || rows.find(key)
      let cells: Float64Array = start.cells
      let base = 0
      if (!known) {
        start.prepare(set, nowUs)
      } else if (!spend && rows.tag !== set.tag) {
        start.preview(set, nowUs)
      } else {
        if (rows.tag !== set.tag) adoptRow(set, nowUs)
        cells = rows.cells
        base = rows.base
        const rule = set.only
        if (rule !== undefined && spend && !set.delays && readings.blockedUs === 0) {
          const at = base + set.onlyAt
          const wait = rule.algorithm.take(cells, at, rule, cost, nowUs)
          const left = rule.algorithm.remaining(cells, at, rule, nowUs)
          readings.waitUs[0] = wait
          readings.remaining[0] = left
          // A refusal of just one unit too many knows it already.
          readings.nextUs[0] =
            wait > 0 && cost === left + 1 ? wait : nextOf(rule, cells, at, left, nowUs)
          const freshUs = rule.algorithm.freshAtUs(cells, at, rule)
          readings.resetUs[0] = freshUs > nowUs ? freshUs - nowUs : 0
          return
        }
      }
      const passes = readWaits(set, cells, base, lists, cost, nowUs) === 0
      if (spend && passes && readings.blockedUs === 0 && cost > 0 && !set.stateless) {
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
        start.prepare(set, nowUs)
        insert(set, key, nowUs)
      }
      spendRow(set, rows.cells, rows.base, lists, cost, nowUs)
    },

    refund(set, key, cost, nowUs) {
      if (find(set, key, nowUs)) refundRow(set, rows.cells, rows.base, lists, cost, nowUs)
      else start.prepare(set, nowUs)
    },

    block: (key, untilUs, nowUs) => blocks.set(rows.idOf(key), untilUs, nowUs),
    unblock: (key) => blocks.delete(rows.idOf(key)),

    reset(key, nowUs) {
      blocks.delete(rows.idOf(key))
      if (seek(key)) rows.remove()
      // Unknown, it would start from the floor: give it a row that is known to be fresh.
      if (seek(key) || !floors.of(rows.shard)?.raised(nowUs)) return
      start.empty()
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
      start.release()
    },

    keys(nowUs) {
      if (!rows.holdsKeys) throw unlistable()
      const keys: string[] = []
      eachInUse(rows, blocks, upkeep, nowUs, () => keys.push(rows.id()))
      return [...keys, ...blockedOnly(rows, blocks, nowUs)]
    },
    size(nowUs) {
      let count = blockedOnly(rows, blocks, nowUs).length
      eachInUse(rows, blocks, upkeep, nowUs, () => {
        count += 1
      })
      return count
    },
    stats: () => ({
      rows: rows.size,
      maxKeys: rows.maxRows,
      blocked: blocks.size,
      evictions: upkeep.evictions,
      floored,
    }),
  }
}
