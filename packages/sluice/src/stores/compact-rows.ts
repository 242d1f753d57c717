// Longer than our files are meant to be: a hash table is understood best in one piece.
import { createFingerprint, newSecret } from './fingerprint.ts'
import { type Column, strideOf } from './layout.ts'
import { moveCells, type RowCare, type Rows } from './rows.ts'

/** Rows that a shard is meant for when all are taken: small enough to be copied unnoticed. */
const SHARD_ROWS = 4_096
const MOST_SHARDS = 65_536

/** Rows looked at for the one nearest to fresh. */
const LOOKED_AT = 4

/** A shard of up to so many slots keeps rows that have become fresh: they may well come back. */
const KEPT_SLOTS = 256

/**
 * createCompactRows is a hash table in typed arrays, cut into shards so that growing one never
 * stalls. Keys are not kept, only their fingerprints.
 *
 * A slot is 8 bytes of fingerprint and tag, and the row's cells next to them, so that one cache
 * miss brings it all:
 *
 *     words   [ low: 32 bits ][ high: 28 bits | tag: 4 bits ]     int32
 *     cells   [      0      ][ cell 1 ][ cell 2 ] …               float64, on the same buffer
 *
 * The high word tells a key's shard, the low word its home slot. Its row is in one of the slots
 * that follow from there without a gap (linear probing). A tag is at least 1, so the second word
 * of a slot is 0 only when it is empty. At most three quarters of a shard are taken.
 *
 * A row that is fresh counts as absent: rather than grow the shard a newcomer takes its slot, and
 * growing leaves it behind. Once `maxRows` are taken, a newcomer takes the place of the row nearest
 * to fresh.
 */
export function createCompactRows(maxRows: number, care: RowCare): Rows {
  const print = createFingerprint(newSecret())
  const shards = shardsFor(maxRows)
  const words: Int32Array[] = []
  const cells: Float64Array[] = []
  const slots = new Uint32Array(shards)
  const taken = new Uint32Array(shards)
  /** Cells per row, and per slot. */
  let stride = 0
  let width = 1
  /** Tags above 15 do not fit into four bits: from then on every slot has a cell for its tag. */
  let wide = false
  /** The slot at the cursor; after a `find` that failed, the empty one that ended it. */
  let slot = 0

  /** Uses the top 16 bits; a shard has at most 65,536 slots. */
  const homeOf = (low: number, count: number) => Math.imul(low >>> 16, count) >>> 16
  const after = (at: number, count: number) => (at + 1 === count ? 0 : at + 1)
  const isEmpty = (shard: number, at: number) => words[shard][2 * at * width + 1] === 0

  function allot(shard: number, count: number): void {
    const buffer = new ArrayBuffer(8 * width * count)
    words[shard] = new Int32Array(buffer)
    cells[shard] = new Float64Array(buffer)
    slots[shard] = count
  }

  function clear(): void {
    for (let shard = 0; shard < shards; shard += 1) allot(shard, 1)
    taken.fill(0)
    rows.size = 0
  }

  function tagAt(shard: number, at: number): number {
    if (wide) return cells[shard][at * width + 1 + stride]
    return words[shard][2 * at * width + 1] & 15
  }

  function point(shard: number, at: number): void {
    slot = at
    rows.shard = shard
    rows.cells = cells[shard]
    rows.base = at * width + 1
    rows.tag = tagAt(shard, at)
  }

  function retag(tag: number): void {
    if (tag > 15 && !wide) widen()
    const second = 2 * slot * width + 1
    words[rows.shard][second] = (words[rows.shard][second] & ~15) | (wide ? 1 : tag)
    if (wide) rows.cells[rows.base + stride] = tag
    rows.tag = tag
  }

  function locate(low: number, high: number): boolean {
    const shard = (high >>> 4) & (shards - 1)
    const table = words[shard]
    const count = slots[shard]
    let at = homeOf(low, count)
    for (;;) {
      const first = 2 * at * width
      const second = table[first + 1]
      if (second === 0) break
      if (table[first] === low && (second & ~15) === high) {
        point(shard, at)
        return true
      }
      at = after(at, count)
    }
    slot = at
    rows.shard = shard
    return false
  }

  function freshAtUs(shard: number, at: number): number {
    return care.freshAtUs(cells[shard], at * width + 1, tagAt(shard, at))
  }

  /** A slot for the newcomer that was just looked for, in its shard, on its way from home. */
  function takeSlot(nowUs: number): number {
    const { shard } = rows
    if (rows.size >= maxRows && evict(shard, slot, nowUs)) return slot
    if (4 * (taken[shard] + 1) > 3 * slots[shard]) {
      const fresh = slots[shard] > KEPT_SLOTS ? freshOnTheWay(shard, nowUs) : -1
      if (fresh >= 0) return fresh
      grow(shard, nowUs)
    }
    taken[shard] += 1
    rows.size += 1
    return emptyFrom(shard, homeOf(print.low, slots[shard]))
  }

  /** The slot of a fresh row between the newcomer's home and the next empty slot, or −1. */
  function freshOnTheWay(shard: number, nowUs: number): number {
    const count = slots[shard]
    for (let at = homeOf(print.low, count); !isEmpty(shard, at); at = after(at, count)) {
      if (freshAtUs(shard, at) > nowUs) continue
      care.dropped(cells[shard], at * width + 1)
      return at
    }
    return -1
  }

  function emptyFrom(shard: number, from: number): number {
    let at = from
    while (!isEmpty(shard, at)) at = after(at, slots[shard])
    return at
  }

  /**
   * Evicts the row nearest to fresh among the next ones from the newcomer's home. True when the
   * newcomer can have its slot, which is then `slot`; else that was given back.
   */
  function evict(home: number, end: number, nowUs: number): boolean {
    let shard = home
    while (taken[shard] === 0) shard = (shard + 1) & (shards - 1)
    const count = slots[shard]
    let at = homeOf(print.low, count)
    let nearest = at
    let nearestUs = Number.POSITIVE_INFINITY
    let onTheWay = shard === home
    let isOnTheWay = false
    const most = Math.min(LOOKED_AT, taken[shard])
    for (let looked = 0; looked < most; at = after(at, count)) {
      if (at === end) onTheWay = false
      if (isEmpty(shard, at)) continue
      looked += 1
      const freshUs = freshAtUs(shard, at)
      if (freshUs >= nearestUs) continue
      nearest = at
      nearestUs = freshUs
      isOnTheWay = onTheWay
    }
    const base = nearest * width + 1
    if (nearestUs > nowUs) care.evicted(cells[shard], base, tagAt(shard, nearest), shard, nowUs)
    care.dropped(cells[shard], base)
    if (!isOnTheWay) giveBack(shard, nearest)
    slot = nearest
    return isOnTheWay
  }

  /** Copies a slot of some words and cells into one of the shard; in loops, since it is small. */
  function copySlot(
    shard: number,
    from: number,
    fromWords: Int32Array,
    fromCells: Float64Array,
    to: number,
  ): void {
    // The first cell is the fingerprint: bits that a float64 need not keep.
    words[shard][2 * to * width] = fromWords[2 * from * width]
    words[shard][2 * to * width + 1] = fromWords[2 * from * width + 1]
    for (let i = 1; i < width; i += 1) cells[shard][to * width + i] = fromCells[from * width + i]
  }

  /** Empties a slot, and moves up the rows behind it that would be cut off from their home. */
  function giveBack(shard: number, at: number): void {
    const count = slots[shard]
    let hole = at
    for (let next = after(at, count); !isEmpty(shard, next); next = after(next, count)) {
      const home = homeOf(words[shard][2 * next * width], count)
      const isBehindHole = hole < next ? home > hole && home <= next : home > hole || home <= next
      if (isBehindHole) continue
      copySlot(shard, next, words[shard], cells[shard], hole)
      hole = next
    }
    for (let i = 0; i < width; i += 1) cells[shard][hole * width + i] = 0
    taken[shard] -= 1
    rows.size -= 1
  }

  /** Copies the rows in use into a shard that they fill by half. */
  function grow(shard: number, nowUs: number): void {
    const [oldWords, oldCells] = [words[shard], cells[shard]]
    const keepsAll = slots[shard] <= KEPT_SLOTS
    const inUse: number[] = []
    for (let at = 0; at < slots[shard]; at += 1) {
      if (isEmpty(shard, at)) continue
      if (keepsAll || freshAtUs(shard, at) > nowUs) inUse.push(at)
      else care.dropped(oldCells, at * width + 1)
    }
    rows.size -= taken[shard] - inUse.length
    taken[shard] = inUse.length
    allot(shard, Math.max(8, 2 * (inUse.length + 1)))
    for (const from of inUse) {
      const at = emptyFrom(shard, homeOf(oldWords[2 * from * width], slots[shard]))
      copySlot(shard, from, oldWords, oldCells, at)
    }
  }

  /** Gives slots another width; every row stays in its slot. */
  function reshape(before: readonly Column[], columns: readonly Column[], widen: boolean): void {
    const [oldWidth, oldStride, wasWide] = [width, stride, wide]
    stride = strideOf(columns)
    wide = widen
    width = 1 + stride + (wide ? 1 : 0)
    for (let shard = 0; shard < shards; shard += 1) {
      const [oldWords, oldCells] = [words[shard], cells[shard]]
      allot(shard, slots[shard])
      for (let at = 0; at < slots[shard]; at += 1) {
        const [low, second] = [oldWords[2 * at * oldWidth], oldWords[2 * at * oldWidth + 1]]
        if (second === 0) continue
        const tag = wasWide ? oldCells[at * oldWidth + 1 + oldStride] : second & 15
        words[shard][2 * at * width] = low
        words[shard][2 * at * width + 1] = (second & ~15) | (wide ? 1 : tag)
        if (wide) cells[shard][at * width + 1 + stride] = tag
        moveCells(oldCells, at * oldWidth + 1, before, cells[shard], at * width + 1, columns)
      }
    }
  }

  let columns: readonly Column[] = []
  function widen(): void {
    reshape(columns, columns, true)
    point(rows.shard, slot)
  }

  // Plain fields only: an accessor would turn the object into a slow one.
  const rows: Rows = {
    cells: new Float64Array(0),
    base: 0,
    tag: 0,
    shard: 0,
    size: 0,
    maxRows,
    shards,
    holdsLists: false,
    holdsKeys: false,

    find(key) {
      print.read(key)
      return locate(print.low, print.high & ~15)
    },
    insert(_key, start, tag, nowUs) {
      const at = takeSlot(nowUs)
      const { shard } = rows
      words[shard][2 * at * width] = print.low
      words[shard][2 * at * width + 1] = (print.high & ~15) | 1
      point(shard, at)
      for (let i = 0; i < stride; i += 1) rows.cells[rows.base + i] = start[i]
      retag(tag)
    },
    retag,
    remove: () => giveBack(rows.shard, slot),
    each(visit) {
      for (let shard = 0; shard < shards; shard += 1) {
        for (let at = 0; at < slots[shard]; at += 1) {
          if (isEmpty(shard, at)) continue
          point(shard, at)
          visit()
        }
      }
    },
    clear,
    move(before, after) {
      columns = after
      reshape(before, after, wide)
    },

    idOf(key) {
      print.read(key)
      return idOf(print.low, print.high & ~15)
    },
    id() {
      const first = 2 * slot * width
      return idOf(words[rows.shard][first], words[rows.shard][first + 1] & ~15)
    },
    hasId(id) {
      const [low, high] = id.split(' ').map(Number)
      return locate(low, high)
    },
  }
  clear()
  return rows
}

function idOf(low: number, high: number): string {
  return `${low} ${high}`
}

function shardsFor(maxRows: number): number {
  let shards = 1
  while (shards * SHARD_ROWS < maxRows && shards < MOST_SHARDS) shards *= 2
  return shards
}
