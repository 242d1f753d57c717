import { type Column, strideOf } from './layout.ts'
import { moveCells, type RowCare, type Rows } from './rows.ts'

const PAGE_BITS = 10
const PAGE_ROWS = 1 << PAGE_BITS

/** Rows looked at to make way when all are taken, and by an insert that takes part in a sweep. */
const LOOKED_AT_FULL = 8
const LOOKED_AT = 4

/** Below this many rows, those that have become fresh are left alone: they may come back. */
const SWEPT_FROM = 1 << 16

/**
 * createMemoryRows keeps a `Map` from key to row number, and the rows' cells and tags in pages, so
 * that growing copies nothing. One shard.
 */
export function createMemoryRows(maxRows: number, care: RowCare): Rows {
  const numbers = new Map<string, number>()
  /** The key of each row; '' for a row that is free. */
  const keys: string[] = []
  const cellPages: Float64Array[] = []
  /** Only kept once rows have different tags; until then all have `sameTag`. */
  const tagPages: Uint32Array[] = []
  let sameTag = 0
  let stride = 0
  let free: number[] = []
  /** The row number at the cursor. */
  let row = 0
  /** The key of that row, if it was found twice in a row. */
  let again = ''
  /** Goes round the rows, to sweep and to evict. */
  let hand = 0
  /** Sweep once there are this many rows: twice what was left over by the last sweep. */
  let sweepFrom = SWEPT_FROM

  function point(at: number): void {
    again = ''
    row = at
    rows.cells = cellPages[at >> PAGE_BITS]
    rows.base = (at & (PAGE_ROWS - 1)) * stride
    rows.tag = tagAt(at)
  }

  function tagAt(at: number): number {
    return sameTag >= 0 ? sameTag : tagPages[at >> PAGE_BITS][at & (PAGE_ROWS - 1)]
  }

  function retag(tag: number): void {
    rows.tag = tag
    if (numbers.size === 1 && sameTag >= 0) sameTag = tag
    if (tag === sameTag) return
    if (sameTag >= 0) {
      for (let page = 0; page < cellPages.length; page += 1) {
        tagPages[page] = new Uint32Array(PAGE_ROWS).fill(sameTag)
      }
      sameTag = -1
    }
    tagPages[row >> PAGE_BITS][row & (PAGE_ROWS - 1)] = tag
  }

  function remove(key: string): void {
    again = ''
    care.dropped(rows.cells, rows.base)
    for (let i = 0; i < stride; i += 1) rows.cells[rows.base + i] = 0
    numbers.delete(key)
    rows.size = numbers.size
    keys[row] = ''
    free.push(row)
  }

  /** Before an insert: gives back rows that are fresh, and when full evicts the nearest to it. */
  function makeWay(nowUs: number): void {
    const full = numbers.size >= maxRows
    if (!full && numbers.size < sweepFrom) return
    let nearest = -1
    let nearestUs = Number.POSITIVE_INFINITY
    for (let left = full ? LOOKED_AT_FULL : LOOKED_AT; left > 0 && numbers.size > 0; left -= 1) {
      point(nextRow())
      const freshUs = care.freshAtUs(rows.cells, rows.base, rows.tag)
      if (freshUs <= nowUs) {
        remove(keys[row])
      } else if (freshUs < nearestUs) {
        nearest = row
        nearestUs = freshUs
      }
    }
    if (numbers.size < maxRows) return
    point(nearest)
    care.evicted(rows.cells, rows.base, rows.tag, 0, nowUs)
    remove(keys[nearest])
  }

  /** The next row that is taken; there is one. */
  function nextRow(): number {
    for (;;) {
      hand += 1
      if (hand >= keys.length) {
        hand = 0
        sweepFrom = Math.max(SWEPT_FROM, 2 * numbers.size)
      }
      if (keys[hand] !== '') return hand
    }
  }

  // Plain fields only: an accessor would turn the object into a slow one.
  const rows: Rows = {
    cells: new Float64Array(0),
    base: 0,
    tag: 0,
    shard: 0,
    size: 0,
    maxRows,
    shards: 1,
    holdsLists: true,
    holdsKeys: true,

    find(key) {
      // The cursor is on it, as when a hot key comes again.
      if (key === again) return true
      const found = numbers.get(key)
      if (found === undefined) return false
      // What point() does, in line: this is the hot path.
      again = ''
      if (found === row) again = key
      row = found
      rows.cells = cellPages[found >> PAGE_BITS]
      rows.base = (found & (PAGE_ROWS - 1)) * stride
      rows.tag = sameTag >= 0 ? sameTag : tagAt(found)
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
      numbers.set(key, at)
      rows.size = numbers.size
      point(at)
      for (let i = 0; i < stride; i += 1) rows.cells[rows.base + i] = start[i]
      retag(tag)
    },
    retag,
    remove,
    each(visit) {
      for (const at of numbers.values()) {
        point(at)
        visit()
      }
    },
    clear() {
      again = ''
      numbers.clear()
      rows.size = 0
      cellPages.length = 0
      tagPages.length = 0
      sameTag = 0
      keys.length = 0
      free = []
      hand = 0
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
    hasId: (id) => numbers.has(id),
  }
  return rows
}
