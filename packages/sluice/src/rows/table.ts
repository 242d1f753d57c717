import type { Decision } from '../core/decision.ts'
import type { Rule } from '../core/rule.ts'
import type { Table } from '../stores/store.ts'
import { type Blocks, createBlocks } from './blocks.ts'
import { decisionOf } from './decision-of.ts'
import { createFloors, type Floors } from './floors.ts'
import { type Column, createLayout, type LaidRules, type Layout } from './layout.ts'
import { createLists } from './lists.ts'
import { decideRow, type Row, refundRow, spendRow } from './row.ts'
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
  /** The row that `decideElse` decided on. */
  let decided: Row = rows

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
  function insert(key: string, tag: number, nowUs: number): void {
    if (start.onFloor) floored += 1
    rows.insert(key, start.cells, tag, nowUs, start.onFloor)
    start.release()
  }

  /** Microseconds the key that was looked for is still blocked. */
  function blockedUs(key: string, nowUs: number): number {
    return blocks.size > 0 ? blocks.leftUs(rows.idOf(key), nowUs) : 0
  }

  /** Decides for a key without a row, on what it starts from, and gives it a row if it has spent. */
  function enter(set: LaidRules, key: string, cost: number, spend: boolean, nowUs: number): number {
    start.prepare(set, nowUs)
    decided = start
    const { onFloor } = start
    const wait = decideRow(set, start, cost, spend && !onFloor, nowUs)
    if (!spend || wait > 0 || cost === 0 || set.stateless) return wait
    if (onFloor) {
      start.begin(set, nowUs)
      spendRow(set, start, cost, nowUs)
    }
    insert(key, set.tag, nowUs)
    decided = rows
    return wait
  }

  /**
   * Decides where the key that was just looked for has no row, or one that was written for other rules,
   * or may be blocked: the wait, the block's included.
   */
  function decideElse(
    set: LaidRules,
    key: string,
    cost: number,
    spend: boolean,
    isKnown: boolean,
    nowUs: number,
  ): number {
    const blocked = blockedUs(key, nowUs)
    const spends = spend && blocked === 0
    if (!isKnown) return enter(set, key, cost, spends, nowUs) + blocked
    decided = rows
    if (rows.tag !== set.tag && !spend) {
      // A look must not carry the row over.
      start.preview(set, nowUs)
      decided = start
    } else if (rows.tag !== set.tag) {
      adoptRow(set, nowUs)
    }
    return decideRow(set, decided, cost, spends, nowUs) + blocked
  }

  function decisionElse(
    set: LaidRules,
    key: string,
    cost: number,
    spend: boolean,
    isKnown: boolean,
    nowUs: number,
  ): Decision {
    decideElse(set, key, cost, spend, isKnown, nowUs)
    return decisionOf(set, decided, cost, blockedUs(key, nowUs), nowUs)
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

  return {
    nowUs: readUs,
    use,

    // allow and decide are short, so that V8 compiles them in one piece with their callers.
    allow(set, key, cost, atUs) {
      const isThere = rows.aim(key)
      // With the plus V8 knows that it is a number, and does not box it.
      const nowUs = atUs === undefined ? readUs() : +atUs
      const isKnown = isThere || rows.find(key)
      if (isKnown && rows.tag === set.tag && blocks.size === 0) {
        return decideRow(set, rows, cost, true, nowUs) <= 0
      }
      return decideElse(set, key, cost, true, isKnown, nowUs) <= 0
    },

    decide(set, key, cost, spend, atUs) {
      const isThere = rows.aim(key)
      const nowUs = atUs === undefined ? readUs() : +atUs
      const isKnown = isThere || rows.find(key)
      if (!isKnown || rows.tag !== set.tag || blocks.size > 0) {
        return decisionElse(set, key, cost, spend, isKnown, nowUs)
      }
      decideRow(set, rows, cost, spend, nowUs)
      return decisionOf(set, rows, cost, 0, nowUs)
    },

    charge(set, key, cost, nowUs) {
      if (cost === 0 || set.stateless) return
      if (find(set, key, nowUs)) {
        spendRow(set, rows, cost, nowUs)
        return
      }
      start.prepare(set, nowUs)
      if (start.onFloor) start.begin(set, nowUs)
      spendRow(set, start, cost, nowUs)
      insert(key, set.tag, nowUs)
    },

    refund(set, key, cost, nowUs) {
      if (find(set, key, nowUs)) refundRow(set, rows, cost, nowUs)
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
      insert(key, layout.fullTag(), nowUs)
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
