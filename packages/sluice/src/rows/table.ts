import { costsAny } from '../core/cost.ts'
import type { Rule } from '../core/rule.ts'
import type { Table } from '../stores/store.ts'
import { type Blocks, createBlocks } from './blocks.ts'
import { decisionOf, tellRules } from './decision-of.ts'
import { createFloors, type Floors } from './floors.ts'
import { chargesOf, extendRow, finishRow, holdsNothing } from './hold.ts'
import { type Column, createLayout, type LaidRules, type Layout } from './layout.ts'
import { createLists } from './lists.ts'
import { admitRow, askRow, decideRow, punishRow, refundRow, spendRow } from './row.ts'
import type { RowCare, Rows } from './rows.ts'
import { createSlowPath } from './slow-path.ts'
import { createStart, dropLists } from './start.ts'
import { unlistable, unsupported } from './store-errors.ts'
import { blockedOnly, createUpkeep, eachInUse } from './upkeep.ts'

/** TableParts is the state that a table keeps besides rows. Default: in this thread's memory. */
export interface TableParts {
  readonly layout?: Layout
  readonly blocks?: Blocks
  readonly floors?: Floors
}

/**
 * createTable creates the table of a synchronous store. It makes all decisions; `makeRows` provides
 * the row storage and gets the callbacks that eviction needs.
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
  const slowPath = createSlowPath(rows, start, blocks)
  const { find, seek } = slowPath
  /** For `ask` and what follows it: whether the key has a row, and whether the fast path applies. */
  let isAsked = false
  let isPlain = false

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

  const table: Table<LaidRules> = {
    isShared: false,
    nowUs: readUs,
    use,

    // allow and decide are short, so that V8 inlines them into their callers.
    allow(set, key, cost, atUs) {
      const isThere = rows.aim(key)
      // The unary plus tells V8 that this is a number, so it stays unboxed.
      const nowUs = atUs === undefined ? readUs() : +atUs
      const isKnown = isThere || rows.find(key)
      if (isKnown && rows.tag === set.tag && blocks.size === 0) {
        return decideRow(set, rows, cost, true, nowUs) <= 0
      }
      return slowPath.decide(set, key, cost, true, isKnown, nowUs) <= 0
    },

    decide(set, key, cost, spend, atUs) {
      const isThere = rows.aim(key)
      const nowUs = atUs === undefined ? readUs() : +atUs
      const isKnown = isThere || rows.find(key)
      if (!isKnown || rows.tag !== set.tag || blocks.size > 0) {
        return slowPath.decision(set, key, cost, spend, isKnown, nowUs)
      }
      decideRow(set, rows, cost, spend, nowUs)
      return decisionOf(set, rows, cost, 0, nowUs)
    },

    ask(set, key, cost, spend, nowUs) {
      isAsked = rows.aim(key) || rows.find(key)
      isPlain = isAsked && rows.tag === set.tag && blocks.size === 0
      if (isPlain) return askRow(set, rows, cost, nowUs)
      if (isAsked && spend && rows.tag !== set.tag) find(set, key, nowUs)
      return slowPath.decide(set, key, cost, false, isAsked, nowUs)
    },
    take(set, key, cost, nowUs) {
      if (isPlain) admitRow(set, rows, cost, nowUs)
      else slowPath.decide(set, key, cost, true, isAsked, nowUs)
    },
    tell(set, key, cost, allowed, nowUs, each, places) {
      tellRules(set, isPlain ? rows : slowPath.decided, cost, allowed, nowUs, each, places)
      return isPlain && blocks.size === 0 ? 0 : slowPath.blockedUs(key, nowUs)
    },

    punish(set, key, _cost, nowUs) {
      // Without a row the key has used nothing: the floor refused it. Do not count that.
      if (set.penalty === undefined || !find(set, key, nowUs)) return
      if (slowPath.blockedUs(key, nowUs) > 0) return
      const us = punishRow(set, rows, nowUs)
      if (us > 0) blocks.set(rows.idOf(key), nowUs + us, nowUs)
    },

    charge(set, key, cost, nowUs) {
      if (!costsAny(cost) || set.stateless) return
      if (find(set, key, nowUs)) {
        spendRow(set, rows, cost, nowUs)
        return
      }
      start.prepare(set, nowUs)
      if (start.onFloor) start.begin(set, nowUs)
      spendRow(set, start, cost, nowUs)
      slowPath.insert(key, set.tag, nowUs)
    },

    refund(set, key, cost, nowUs, spentUs) {
      if (find(set, key, nowUs)) refundRow(set, rows, cost, nowUs, spentUs)
      else start.prepare(set, nowUs)
    },
    finish(set, key, held, change, nowUs) {
      if (find(set, key, nowUs)) finishRow(set, rows, held, change, nowUs)
      else table.charge(set, key, chargesOf(set, change), nowUs)
    },
    extend: (set, key, held, nowUs) =>
      find(set, key, nowUs) ? extendRow(set, rows, held, nowUs) : holdsNothing(set, held),

    block: (key, untilUs, nowUs) => blocks.set(rows.idOf(key), untilUs, nowUs),
    unblock: (key) => blocks.delete(rows.idOf(key)),

    reset(key, nowUs) {
      blocks.delete(rows.idOf(key))
      if (seek(key)) rows.remove()
      // Without a row the key would start from the floor, so give it a fresh row instead.
      if (seek(key) || !floors.of(rows.shard)?.raised(nowUs)) return
      start.empty()
      slowPath.insert(key, layout.fullTag(), nowUs)
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
      floored: slowPath.floored,
    }),
  }
  return table
}
