import { createBlocks } from './blocks.ts'
import { createFloor } from './floor.ts'
import { type Column, createLayout, type LaidRules } from './layout.ts'
import { createLists } from './lists.ts'
import { growList, readRest, readWaits, refundRow, spendRow, stateOf, waitOf } from './row.ts'
import type { Table } from './store.ts'

const PAGE_BITS = 10
const PAGE_ROWS = 1 << PAGE_BITS

/** Rows looked at to make way when the table is full, and by an insert that takes part in a sweep. */
const LOOKED_AT_FULL = 16
const LOOKED_AT = 4

/** Below this many rows, those that have become fresh are left alone: they may come back. */
const SWEPT_FROM = 1 << 16

/**
 * createMemoryTable keeps a `Map` from key to row number, and the rows' cells and tags in pages,
 * so that growing copies nothing.
 */
export function createMemoryTable(maxKeys: number, nowUs: () => number): Table<LaidRules> {
  const rows = new Map<string, number>()
  const blocks = createBlocks()
  const layout = createLayout()
  const lists = createLists()
  const floor = createFloor(lists.all[0])
  const cellPages: Float64Array[] = []
  const tagPages: Uint32Array[] = []
  let free: number[] = []
  let used = 0
  /** A row for keys that have none: what they would start from. */
  let start = new Float64Array(0)
  let hand = rows.keys()
  /** Sweep once there are this many rows: twice what was left over by the last sweep. */
  let sweepFrom = SWEPT_FROM
  let evictions = 0
  let floored = 0

  /** Rewrites a row for the rules at hand, and gives its new tag. */
  function adopt(
    set: LaidRules,
    cells: Float64Array,
    base: number,
    tag: number,
    nowUs: number,
  ): number {
    if (tag === set.tag || layout.fits(tag, set)) return tag
    for (let i = 0; i < set.rules.length; i += 1) {
      const rule = set.rules[i]
      const column = set.columns[i]
      if (column < 0) continue
      const at = base + set.at[i]
      const before = layout.writtenFor(tag, column)
      if (before) {
        rule.algorithm.carry(stateOf(rule, cells, at, lists), at, before, rule, nowUs)
      } else if (floor.raised(nowUs)) {
        if (rule.algorithm.grows) growList(rule, cells, at, lists, nowUs)
        const state = stateOf(rule, cells, at, lists)
        if (floor.apply(column, layout.columns[column], rule, state, at, nowUs)) floored += 1
      }
    }
    return tag === 0 ? set.tag : layout.tagAfter(tag, set)
  }

  /** Brings a known key's row up to the rules at hand. */
  function adoptRow(set: LaidRules, row: number, nowUs: number): void {
    const tags = tagPages[row >> PAGE_BITS]
    const i = row & (PAGE_ROWS - 1)
    if (tags[i] !== set.tag) tags[i] = adopt(set, cellsOf(row), baseOf(row), tags[i], nowUs)
  }

  /** Prepares `start` for a key that has no row. */
  function adoptStart(set: LaidRules, nowUs: number): void {
    emptyStart()
    if (floor.raised(nowUs)) adopt(set, start, 0, 0, nowUs)
  }

  function emptyStart(): void {
    dropLists(start, 0, layout.columns)
    start.fill(0)
  }

  const cellsOf = (row: number) => cellPages[row >> PAGE_BITS]
  const baseOf = (row: number) => (row & (PAGE_ROWS - 1)) * layout.stride

  /** Gives a key the row that `start` holds. */
  function insert(set: LaidRules, key: string, nowUs: number): number {
    makeWay(nowUs)
    const row = free.pop() ?? used++
    const page = row >> PAGE_BITS
    if (page === cellPages.length) {
      cellPages.push(new Float64Array(PAGE_ROWS * layout.stride))
      tagPages.push(new Uint32Array(PAGE_ROWS))
    }
    cellPages[page].set(start, baseOf(row))
    start.fill(0)
    tagPages[page][row & (PAGE_ROWS - 1)] = set.tag
    rows.set(key, row)
    return row
  }

  function remove(key: string, row: number): void {
    const base = baseOf(row)
    dropLists(cellsOf(row), base, layout.columns)
    cellsOf(row).fill(0, base, base + layout.stride)
    tagPages[row >> PAGE_BITS][row & (PAGE_ROWS - 1)] = 0
    rows.delete(key)
    free.push(row)
  }

  function dropLists(cells: Float64Array, base: number, columns: readonly Column[]): void {
    for (const { grows, at } of columns) if (grows) lists.remove(cells[base + at])
  }

  /** When the row is fresh: the latest of the columns that were ever written. */
  function freshAtUs(row: number): number {
    const cells = cellsOf(row)
    const base = baseOf(row)
    const tag = tagPages[row >> PAGE_BITS][row & (PAGE_ROWS - 1)]
    let latest = 0
    for (let column = 0; column < layout.columns.length; column += 1) {
      const rule = layout.writtenFor(tag, column)
      if (!rule) continue
      const at = base + layout.columns[column].at
      const freshUs = rule.algorithm.freshAtUs(stateOf(rule, cells, at, lists), at, rule)
      if (freshUs > latest) latest = freshUs
    }
    return latest
  }

  /** Before an insert: gives back rows that are fresh, and when full evicts the nearest to it. */
  function makeWay(nowUs: number): void {
    const full = rows.size >= maxKeys
    if (!full && rows.size < sweepFrom) return
    let nearest = ''
    let nearestUs = Number.POSITIVE_INFINITY
    for (let looked = full ? LOOKED_AT_FULL : LOOKED_AT; looked > 0 && rows.size > 0; looked -= 1) {
      let next = hand.next()
      if (next.done) {
        sweepFrom = Math.max(SWEPT_FROM, 2 * rows.size)
        hand = rows.keys()
        next = hand.next()
      }
      const key = next.value as string
      const row = rows.get(key)!
      const freshUs = freshAtUs(row)
      if (freshUs <= nowUs) {
        remove(key, row)
      } else if (freshUs < nearestUs) {
        nearest = key
        nearestUs = freshUs
      }
    }
    if (rows.size >= maxKeys) evict(nearest, nowUs)
  }

  function evict(key: string, nowUs: number): void {
    const row = rows.get(key)!
    const cells = cellsOf(row)
    const tag = tagPages[row >> PAGE_BITS][row & (PAGE_ROWS - 1)]
    layout.columns.forEach(({ at }, column) => {
      const rule = layout.writtenFor(tag, column)
      if (!rule) return
      const offset = baseOf(row) + at
      const state = stateOf(rule, cells, offset, lists)
      if (rule.algorithm.freshAtUs(state, offset, rule) > nowUs) {
        floor.raise(column, rule, state, offset, nowUs)
      }
    })
    remove(key, row)
    evictions += 1
  }

  /** Copies every row into pages of the new layout. */
  function moveRows(before: readonly Column[]): void {
    const last = before.at(-1)
    const stride = last ? last.at + last.cells : 0
    dropLists(start, 0, before)
    start = new Float64Array(layout.stride)
    cellPages.forEach((page, p) => {
      const wider = new Float64Array(PAGE_ROWS * layout.stride)
      for (let row = 0; row < PAGE_ROWS; row += 1) {
        before.forEach(({ at, cells }, column) => {
          const from = row * stride + at
          const to = row * layout.stride + layout.columns[column].at
          wider.set(page.subarray(from, from + cells), to)
        })
      }
      cellPages[p] = wider
    })
  }

  return {
    nowUs,
    use: (rules) => layout.use(rules, moveRows),

    allow(set, key, cost, nowUs) {
      if (blocks.size > 0 && blocks.leftUs(key, nowUs) > 0) return false
      let row = rows.get(key)
      if (row === undefined) {
        adoptStart(set, nowUs)
        if (waitOf(set, start, 0, lists, cost, nowUs) > 0) return false
        if (cost === 0 || set.stateless) return true
        row = insert(set, key, nowUs)
      } else {
        adoptRow(set, row, nowUs)
        if (waitOf(set, cellsOf(row), baseOf(row), lists, cost, nowUs) > 0) return false
        if (cost === 0) return true
      }
      spendRow(set, cellsOf(row), baseOf(row), lists, cost, nowUs)
      return true
    },

    decide(set, key, cost, nowUs, spend) {
      const { figures } = set
      figures.blockedUs = blocks.size > 0 ? blocks.leftUs(key, nowUs) : 0
      let row = rows.get(key)
      if (row === undefined) adoptStart(set, nowUs)
      else adoptRow(set, row, nowUs)
      let cells = row === undefined ? start : cellsOf(row)
      let base = row === undefined ? 0 : baseOf(row)
      readWaits(set, cells, base, lists, cost, nowUs)
      let passes = figures.blockedUs === 0
      for (let i = 0; i < figures.waitUs.length; i += 1) if (figures.waitUs[i] > 0) passes = false
      if (spend && passes && cost > 0 && !set.stateless) {
        row ??= insert(set, key, nowUs)
        cells = cellsOf(row)
        base = baseOf(row)
        spendRow(set, cells, base, lists, cost, nowUs)
      }
      readRest(set, cells, base, lists, nowUs)
    },

    charge(set, key, cost, nowUs) {
      if (cost === 0 || set.stateless) return
      let row = rows.get(key)
      if (row === undefined) {
        adoptStart(set, nowUs)
        row = insert(set, key, nowUs)
      } else {
        adoptRow(set, row, nowUs)
      }
      spendRow(set, cellsOf(row), baseOf(row), lists, cost, nowUs)
    },

    refund(set, key, cost, nowUs) {
      const row = rows.get(key)
      if (row === undefined) return
      adoptRow(set, row, nowUs)
      refundRow(set, cellsOf(row), baseOf(row), lists, cost, nowUs)
    },

    block: blocks.set,
    unblock: blocks.delete,

    reset(set, key, nowUs) {
      blocks.delete(key)
      const row = rows.get(key)
      if (row !== undefined) remove(key, row)
      // Unknown, it would start from the floor: give it a row that is known to be fresh.
      if (floor.raised(nowUs) && !set.stateless) {
        emptyStart()
        insert(set, key, nowUs)
      }
    },

    clear() {
      rows.clear()
      blocks.clear()
      floor.clear()
      lists.clear()
      cellPages.length = 0
      tagPages.length = 0
      free = []
      used = 0
      sweepFrom = SWEPT_FROM
      start.fill(0)
      hand = rows.keys()
    },

    *keys(nowUs) {
      for (const [key, row] of rows) {
        if (freshAtUs(row) > nowUs || blocks.leftUs(key, nowUs) > 0) yield key
      }
      for (const key of blocks.keys()) {
        if (!rows.has(key) && blocks.leftUs(key, nowUs) > 0) yield key
      }
    },
    size(nowUs) {
      let count = 0
      for (const _ of this.keys(nowUs)) count += 1
      return count
    },
    stats: () => ({ rows: rows.size, maxKeys, blocked: blocks.size, evictions, floored }),
  }
}
