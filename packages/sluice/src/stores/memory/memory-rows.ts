import { type Column, strideOf } from '../../rows/layout.ts'
import { moveCells, type RowCare, type Rows } from '../../rows/rows.ts'
import { createKeyIndex } from './key-index.ts'

const PAGE_BITS = 10
const PAGE_ROWS = 1 << PAGE_BITS
const PAGE_MASK = PAGE_ROWS - 1

/** Rows that an insert examines while sweeping, and at most when the store is full. */
const LOOKED_AT = 4
const LOOKED_AT_FULL = 16

/** Stores with fewer rows keep fresh ones: their keys may come back. */
const SWEPT_FROM = 1 << 16

/**
 * createMemoryRows keeps an index from keys to row numbers, and the cells and tags of rows in
 * pages, so that growing copies nothing. All rows are one shard.
 */
export function createMemoryRows(maxRows: number, care: RowCare): Rows {
  /** The key of each row; '' for a free row. */
  const keys: string[] = []
  const index = createKeyIndex(keys, maxRows)
  const cellPages: Float64Array[] = []
  /** Used once rows have different tags; until then all rows have `sameTag`. */
  const tagPages: Uint32Array[] = []
  let sameTag = 0
  let stride = 0
  let free: number[] = []
  /** The row number at the cursor. */
  let row = 0
  /** The key of that row, if the last two look-ups found it. */
  let again = ''
  /** The clock hand that sweeps and evicts. */
  let hand = 0
  /** A row that is fresh by this instant is evicted at once. Reset at every round of the hand. */
  let barUs = 0
  /** Sweep from this many rows on: twice as many as the last sweep left. */
  let sweepFrom = SWEPT_FROM

  function point(at: number): void {
    again = ''
    row = at
    rows.cells = cellPages[at >> PAGE_BITS]
    rows.base = (at & PAGE_MASK) * stride
    rows.tag = tagAt(at)
  }

  function tagAt(at: number): number {
    return sameTag >= 0 ? sameTag : tagPages[at >> PAGE_BITS][at & PAGE_MASK]
  }

  function retag(tag: number): void {
    rows.tag = tag
    if (rows.size === 1 && sameTag >= 0) sameTag = tag
    if (tag === sameTag) return
    if (sameTag >= 0) {
      for (let page = 0; page < cellPages.length; page += 1) {
        tagPages[page] = new Uint32Array(PAGE_ROWS).fill(sameTag)
      }
      sameTag = -1
    }
    tagPages[row >> PAGE_BITS][row & PAGE_MASK] = tag
  }

  function remove(): void {
    again = ''
    care.dropped(rows.cells, rows.base)
    for (let i = 0; i < stride; i += 1) rows.cells[rows.base + i] = 0
    index.remove(row)
    rows.size -= 1
    keys[row] = ''
    free.push(row)
  }

  /**
   * Frees fresh rows before an insert. When full, evicts the next row that is fresh by `barUs`. If
   * none of the examined rows is, evicts the one that is fresh first and raises `barUs` to its
   * fresh time.
   */
  function makeWay(nowUs: number): void {
    const full = rows.size >= maxRows
    if (!full && rows.size < sweepFrom) return
    let nearest = -1
    let nearestUs = Number.POSITIVE_INFINITY
    for (let left = full ? LOOKED_AT_FULL : LOOKED_AT; left > 0 && rows.size > 0; left -= 1) {
      const near = !full || left > LOOKED_AT_FULL - LOOKED_AT
      point(near ? nextRow() : farRow(left))
      const freshUs = care.freshAtUs(rows.cells, rows.base, rows.tag)
      if (freshUs <= nowUs) {
        remove()
      } else if (freshUs < nearestUs) {
        nearest = row
        nearestUs = freshUs
        if (full && freshUs <= barUs) break
      }
    }
    if (rows.size < maxRows) return
    if (nearestUs > barUs) barUs = nearestUs
    point(nearest)
    care.evicted(rows.cells, rows.base, rows.tag, 0, nowUs)
    remove()
  }

  /** Returns the next occupied row. There must be one. */
  function nextRow(): number {
    for (;;) {
      hand += 1
      if (hand >= keys.length) {
        hand = 0
        barUs = 0
        sweepFrom = Math.max(SWEPT_FROM, 2 * rows.size)
      }
      if (keys[hand] !== '') return hand
    }
  }

  /** Returns one of several rows spread over the table: neighbours may have been used alike. */
  function farRow(i: number): number {
    const at = (hand + i * Math.ceil(keys.length / LOOKED_AT_FULL)) % keys.length
    return keys[at] === '' ? nextRow() : at
  }

  // Plain fields only: an accessor would switch the object to V8's slow dictionary mode.
  const rows: Rows = {
    cells: new Float64Array(0),
    base: 0,
    lists: care.lists,
    tag: 0,
    shard: 0,
    size: 0,
    maxRows,
    shards: 1,
    holdsLists: true,
    holdsKeys: true,

    aim(key) {
      // The cursor is on the row of a hot key already.
      if (key === again) return true
      index.aim(key)
      return false
    },
    find(key) {
      const found = index.find(key)
      if (found < 0) return false
      // Hot path: point(), inlined by hand.
      const cursor = rows
      again = found === row ? key : ''
      row = found
      cursor.cells = cellPages[found >> PAGE_BITS]
      cursor.base = (found & PAGE_MASK) * stride
      cursor.tag = sameTag < 0 ? tagAt(found) : sameTag
      return true
    },
    insert(key, start, tag, nowUs) {
      makeWay(nowUs)
      const at = free.pop() ?? keys.length
      keys[at] = key
      if (at >> PAGE_BITS === cellPages.length) {
        cellPages.push(new Float64Array(PAGE_ROWS * stride))
        if (sameTag < 0) tagPages.push(new Uint32Array(PAGE_ROWS))
      }
      index.add(at)
      rows.size += 1
      point(at)
      for (let i = 0; i < stride; i += 1) rows.cells[rows.base + i] = start[i]
      retag(tag)
    },
    retag,
    remove,
    each(visit) {
      for (let at = 0; at < keys.length; at += 1) {
        if (keys[at] === '') continue
        point(at)
        visit()
      }
    },
    clear() {
      again = ''
      index.clear()
      rows.size = 0
      cellPages.length = 0
      tagPages.length = 0
      sameTag = 0
      keys.length = 0
      free = []
      hand = 0
      barUs = 0
      sweepFrom = SWEPT_FROM
    },
    move(before: readonly Column[], after: readonly Column[]) {
      again = ''
      const [from, to] = [strideOf(before), strideOf(after)]
      cellPages.forEach((page, p) => {
        cellPages[p] = new Float64Array(PAGE_ROWS * to)
        for (let i = 0; i < PAGE_ROWS; i += 1) {
          moveCells(page, i * from, before, cellPages[p], i * to, after)
        }
      })
      stride = to
    },

    idOf: (key) => key,
    id: () => keys[row],
    hasId(id) {
      index.aim(id)
      return index.find(id) >= 0
    },
  }
  return rows
}
