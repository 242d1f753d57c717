// Longer than our files are meant to be: a hash table is understood best in one piece.
import { createFingerprint, newSecret } from './fingerprint.ts'
import { type Column, strideOf } from './layout.ts'
import { moveCells, type RowCare, type Rows } from './rows.ts'

/** Rows that a shard is meant for when all are taken: small enough to be copied unnoticed. */
const SHARD_ROWS = 16_384
const MOST_SHARDS = 65_536

/** Rows looked at for the one nearest to fresh. */
const LOOKED_AT = 4

/** A shard of up to so many slots keeps rows that have become fresh: they may well come back. */
const KEPT_SLOTS = 256

/** Shard is a part of the table, with room for rows of its own. */
interface Shard {
  words: Int32Array
  cells: Float64Array
  slots: number
  /** Slots that hold a row. */
  taken: number
}

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
  const shards: Shard[] = Array.from({ length: shardsFor(maxRows) }, newShard)
  const shardMask = shards.length - 1
  /** Cells per row, and per slot. */
  let stride = 0
  let width = 1
  /** Tags above 15 do not fit into four bits: from then on every slot has a cell for its tag. */
  let wide = false
  /** The shard and slot at the cursor; after a `find` that failed, the empty one that ended it. */
  let shard = shards[0]
  let slot = 0
  /** Whether the cursor is on the row of the key whose fingerprint was read last. */
  let isThere = false

  /** Uses the top 16 bits; a shard has at most 65,536 slots. */
  const homeOf = (low: number, count: number) => Math.imul(low >>> 16, count) >>> 16
  const after = (at: number, count: number) => (at + 1 === count ? 0 : at + 1)
  const isEmpty = ({ words }: Shard, at: number) => words[2 * at * width + 1] === 0

  function allot(shard: Shard, count: number): void {
    isThere = false
    const buffer = new ArrayBuffer(8 * width * count)
    shard.words = new Int32Array(buffer)
    shard.cells = new Float64Array(buffer)
    shard.slots = count
  }

  function clear(): void {
    for (const shard of shards) {
      allot(shard, 1)
      shard.taken = 0
    }
    rows.size = 0
  }

  function tagAt({ words, cells }: Shard, at: number): number {
    return wide ? cells[at * width + 1 + stride] : words[2 * at * width + 1] & 15
  }

  function point(at: number): void {
    slot = at
    rows.cells = shard.cells
    rows.base = at * width + 1
    rows.tag = tagAt(shard, at)
  }

  function retag(tag: number): void {
    if (tag > 15 && !wide) widen()
    const { words, cells } = shard
    const second = 2 * slot * width + 1
    words[second] = (words[second] & ~15) | (wide ? 1 : tag)
    if (wide) cells[rows.base + stride] = tag
    rows.tag = tag
  }

  /** Moves the cursor to the row of a fingerprint, or to the empty slot that ends the search. */
  function locate(low: number, high: number): boolean {
    const number = (high >>> 4) & shardMask
    const found = shards[number]
    const { words, slots } = found
    shard = found
    rows.shard = number
    let at = homeOf(low, slots)
    for (;;) {
      const second = words[2 * at * width + 1]
      if (second === 0) break
      if (words[2 * at * width] === low && (second & ~15) === high) {
        point(at)
        return true
      }
      at = after(at, slots)
    }
    slot = at
    return false
  }

  function freshAtUs(shard: Shard, at: number): number {
    return care.freshAtUs(shard.cells, at * width + 1, tagAt(shard, at))
  }

  /** A slot for the newcomer that was just looked for, in its shard, on its way from home. */
  function takeSlot(nowUs: number): number {
    if (rows.size >= maxRows && evict(nowUs)) return slot
    if (4 * (shard.taken + 1) > 3 * shard.slots) {
      const fresh = shard.slots > KEPT_SLOTS ? freshOnTheWay(nowUs) : -1
      if (fresh >= 0) return fresh
      grow(nowUs)
    }
    shard.taken += 1
    rows.size += 1
    return emptyFrom(shard, homeOf(print.low, shard.slots))
  }

  /** The slot of a fresh row between the newcomer's home and the next empty slot, or −1. */
  function freshOnTheWay(nowUs: number): number {
    const { slots } = shard
    for (let at = homeOf(print.low, slots); !isEmpty(shard, at); at = after(at, slots)) {
      if (freshAtUs(shard, at) > nowUs) continue
      care.dropped(shard.cells, at * width + 1)
      return at
    }
    return -1
  }

  function emptyFrom(shard: Shard, from: number): number {
    let at = from
    while (!isEmpty(shard, at)) at = after(at, shard.slots)
    return at
  }

  /**
   * Evicts the row nearest to fresh among the next ones from the newcomer's home. True when the
   * newcomer can have its slot, which is then `slot`; else that was given back.
   */
  function evict(nowUs: number): boolean {
    let number = rows.shard
    while (shards[number].taken === 0) number = (number + 1) & shardMask
    const from = shards[number]
    const { cells, slots, taken } = from
    let at = homeOf(print.low, slots)
    let nearest = at
    let nearestUs = Number.POSITIVE_INFINITY
    let onTheWay = from === shard
    let isOnTheWay = false
    const most = Math.min(LOOKED_AT, taken)
    for (let looked = 0; looked < most; at = after(at, slots)) {
      if (at === slot) onTheWay = false
      if (isEmpty(from, at)) continue
      looked += 1
      const freshUs = freshAtUs(from, at)
      if (freshUs >= nearestUs) continue
      nearest = at
      nearestUs = freshUs
      isOnTheWay = onTheWay
    }
    const base = nearest * width + 1
    if (nearestUs > nowUs) care.evicted(cells, base, tagAt(from, nearest), number, nowUs)
    care.dropped(cells, base)
    if (!isOnTheWay) giveBack(from, nearest)
    slot = nearest
    return isOnTheWay
  }

  /** Copies a slot of one shard's arrays into one of another's; in loops, since it is small. */
  function copySlot(from: Pick<Shard, 'words' | 'cells'>, at: number, to: Shard, toAt: number) {
    // The first cell is the fingerprint: bits that a float64 need not keep.
    to.words[2 * toAt * width] = from.words[2 * at * width]
    to.words[2 * toAt * width + 1] = from.words[2 * at * width + 1]
    for (let i = 1; i < width; i += 1) to.cells[toAt * width + i] = from.cells[at * width + i]
  }

  /** Empties a slot, and moves up the rows behind it that would be cut off from their home. */
  function giveBack(shard: Shard, at: number): void {
    const { words, cells, slots } = shard
    let hole = at
    for (let next = after(at, slots); !isEmpty(shard, next); next = after(next, slots)) {
      const home = homeOf(words[2 * next * width], slots)
      const isBehindHole = hole < next ? home > hole && home <= next : home > hole || home <= next
      if (isBehindHole) continue
      copySlot(shard, next, shard, hole)
      hole = next
    }
    for (let i = 0; i < width; i += 1) cells[hole * width + i] = 0
    shard.taken -= 1
    rows.size -= 1
  }

  /** Copies the newcomer's shard's rows in use into arrays that they fill by half. */
  function grow(nowUs: number): void {
    const { words, cells, slots, taken } = shard
    const keepsAll = slots <= KEPT_SLOTS
    const inUse: number[] = []
    for (let at = 0; at < slots; at += 1) {
      if (isEmpty(shard, at)) continue
      if (keepsAll || freshAtUs(shard, at) > nowUs) inUse.push(at)
      else care.dropped(cells, at * width + 1)
    }
    rows.size -= taken - inUse.length
    shard.taken = inUse.length
    allot(shard, Math.max(8, 2 * (inUse.length + 1)))
    for (const at of inUse) {
      const home = homeOf(words[2 * at * width], shard.slots)
      copySlot({ words, cells }, at, shard, emptyFrom(shard, home))
    }
  }

  /** Gives slots another width; every row stays in its slot. */
  function reshape(before: readonly Column[], columns: readonly Column[], widen: boolean): void {
    const [oldWidth, oldStride, wasWide] = [width, stride, wide]
    stride = strideOf(columns)
    wide = widen
    width = 1 + stride + (wide ? 1 : 0)
    for (const shard of shards) {
      const { words: oldWords, cells: oldCells, slots } = shard
      allot(shard, slots)
      const { words, cells } = shard
      for (let at = 0; at < slots; at += 1) {
        const [low, second] = [oldWords[2 * at * oldWidth], oldWords[2 * at * oldWidth + 1]]
        if (second === 0) continue
        const tag = wasWide ? oldCells[at * oldWidth + 1 + oldStride] : second & 15
        words[2 * at * width] = low
        words[2 * at * width + 1] = (second & ~15) | (wide ? 1 : tag)
        if (wide) cells[at * width + 1 + stride] = tag
        moveCells(oldCells, at * oldWidth + 1, before, cells, at * width + 1, columns)
      }
    }
  }

  let columns: readonly Column[] = []
  function widen(): void {
    reshape(columns, columns, true)
    point(slot)
  }

  // Plain fields only: an accessor would turn the object into a slow one.
  const rows: Rows = {
    cells: new Float64Array(0),
    base: 0,
    tag: 0,
    shard: 0,
    size: 0,
    maxRows,
    shards: shards.length,
    holdsLists: false,
    holdsKeys: false,

    find(key) {
      if (print.read(key) && isThere) return true
      isThere = locate(print.low, print.high & ~15)
      return isThere
    },
    insert(_key, start, tag, nowUs) {
      const at = takeSlot(nowUs)
      const { words, cells } = shard
      words[2 * at * width] = print.low
      words[2 * at * width + 1] = (print.high & ~15) | 1
      point(at)
      for (let i = 0; i < stride; i += 1) cells[rows.base + i] = start[i]
      retag(tag)
    },
    retag,
    remove() {
      isThere = false
      giveBack(shard, slot)
    },
    each(visit) {
      isThere = false
      shards.forEach((each, number) => {
        shard = each
        rows.shard = number
        for (let at = 0; at < each.slots; at += 1) {
          if (isEmpty(each, at)) continue
          point(at)
          visit()
        }
      })
    },
    clear,
    move(before, after) {
      columns = after
      reshape(before, after, wide)
    },

    idOf(key) {
      isThere = print.read(key) && isThere
      return idOf(print.low, print.high & ~15)
    },
    id() {
      const first = 2 * slot * width
      return idOf(shard.words[first], shard.words[first + 1] & ~15)
    },
    hasId(id) {
      isThere = false
      const [low, high] = id.split(' ').map(Number)
      return locate(low, high)
    },
  }
  clear()
  return rows
}

function newShard(): Shard {
  return { words: new Int32Array(0), cells: new Float64Array(0), slots: 0, taken: 0 }
}

function idOf(low: number, high: number): string {
  return `${low} ${high}`
}

function shardsFor(maxRows: number): number {
  let shards = 1
  while (shards * SHARD_ROWS < maxRows && shards < MOST_SHARDS) shards *= 2
  return shards
}
