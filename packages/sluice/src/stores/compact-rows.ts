// Longer than our files are meant to be: a hash table is understood best in one piece.
import { createFingerprint, newSecret } from './fingerprint.ts'
import { type Column, strideOf } from './layout.ts'
import { after, isCutOff, shardsFor } from './probing.ts'
import { moveCells, type RowCare, type Rows } from './rows.ts'

/** Rows looked at most for one to evict, and evictions after which a shard's bar is found anew. */
const LOOKED_AT = 16
const BAR_LASTS = 1_024

/** A shard of up to so many slots keeps rows that have become fresh: they may well come back. */
const KEPT_SLOTS = 256

/** Shard is a part of the table, with room for rows of its own. */
interface Shard {
  words: Int32Array
  cells: Float64Array
  slots: number
  /** Slots that hold a row. */
  taken: number
  /** By when a row has to be fresh to be evicted at once, and how many were evicted. */
  barUs: number
  evictions: number
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
 * growing leaves it behind. Once `maxRows` are taken, a newcomer takes the place of a row that is
 * near to fresh.
 */
export function createCompactRows(maxRows: number, care: RowCare): Rows {
  const print = createFingerprint(newSecret())
  const { hash } = print
  const shards: Shard[] = Array.from({ length: shardsFor(maxRows) }, newShard)
  const shardMask = shards.length - 1
  /** Cells per row, and per slot. */
  let stride = 0
  let width = 1
  /** Tags above 15 do not fit into four bits: from then on every slot has a cell for its tag. */
  let wide = false
  /** The key of the row at the cursor, if it was found twice in a row. */
  let again = ''

  /** Uses the top 16 bits; a shard has at most 65,536 slots. */
  const homeOf = (low: number, slots: number) => Math.imul(low >>> 16, slots) >>> 16
  const isEmpty = ({ words }: Shard, at: number) => words[2 * at * width + 1] === 0

  function allot(shard: Shard, count: number): void {
    again = ''
    const buffer = new ArrayBuffer(8 * width * count)
    shard.words = new Int32Array(buffer)
    shard.cells = new Float64Array(buffer)
    shard.slots = count
  }

  function clear(): void {
    for (const shard of shards) {
      allot(shard, 1)
      shard.taken = 0
      shard.barUs = 0
    }
    rows.size = 0
  }

  function tagAt({ words, cells }: Shard, at: number): number {
    return wide ? cells[at * width + 1 + stride] : words[2 * at * width + 1] & 15
  }

  function point(shard: Shard, at: number): void {
    again = ''
    rows.cells = shard.cells
    rows.base = at * width + 1
    rows.tag = tagAt(shard, at)
  }

  /** The slot at the cursor. */
  const slotAt = () => (rows.base - 1) / width

  function retag(tag: number): void {
    if (tag > 15 && !wide) widen()
    const { words, cells } = shards[rows.shard]
    const second = 2 * rows.base - 1
    words[second] = (words[second] & ~15) | (wide ? 1 : tag)
    if (wide) cells[rows.base + stride] = tag
    rows.tag = tag
  }

  /** Moves the cursor to the row of the fingerprint that was read; false when it has none. */
  function locate(): boolean {
    const { low } = print
    const high = print.high & ~15
    const cursor = rows
    const each = width
    const number = (high >>> 4) & shardMask
    const shard = shards[number]
    const { words, slots } = shard
    cursor.shard = number
    let at = homeOf(low, slots)
    let second = words[2 * at * each + 1]
    while (words[2 * at * each] !== low || (second & ~15) !== high) {
      if (second === 0) return false
      at = after(at, slots)
      second = words[2 * at * each + 1]
    }
    // What point() does, in line: this is the hot path.
    cursor.cells = shard.cells
    cursor.base = at * each + 1
    cursor.tag = wide ? tagAt(shard, at) : second & 15
    // A fingerprint of zeros looks like an empty slot.
    return second !== 0
  }

  function freshAtUs(shard: Shard, at: number): number {
    return care.freshAtUs(shard.cells, at * width + 1, tagAt(shard, at))
  }

  /** A slot for the newcomer that was just looked for, in its shard, on its way from home. */
  function takeSlot(shard: Shard, nowUs: number): number {
    const isFull = rows.size >= maxRows
    if (isFull && shard.taken > 0) return evict(shard, rows.shard, nowUs)
    if (isFull) evictElsewhere(nowUs)
    if (4 * (shard.taken + 1) > 3 * shard.slots) {
      const fresh = shard.slots > KEPT_SLOTS ? freshOnTheWay(shard, nowUs) : -1
      if (fresh >= 0) return fresh
      grow(shard, nowUs)
    }
    shard.taken += 1
    rows.size += 1
    return emptyFrom(shard, homeOf(print.low, shard.slots))
  }

  /** The slot of the first fresh row between the newcomer's home and an empty slot, or −1. */
  function freshOnTheWay(shard: Shard, nowUs: number): number {
    const { slots } = shard
    for (let at = homeOf(print.low, slots); !isEmpty(shard, at); at = after(at, slots)) {
      if (freshAtUs(shard, at) <= nowUs) return at
    }
    return -1
  }

  function emptyFrom(shard: Shard, from: number): number {
    let at = from
    while (!isEmpty(shard, at)) at = after(at, shard.slots)
    return at
  }

  /**
   * Evicts the first row from the newcomer's home on that is fresh by the shard's bar, and gives the
   * newcomer's slot in its place. If none of some rows is, the nearest of them goes, and becomes the
   * bar: so those that go are about as near to fresh as the nearest of many, though one or two are
   * looked at.
   */
  function evict(shard: Shard, number: number, nowUs: number): number {
    const { words, cells, slots, taken } = shard
    shard.evictions += 1
    const barUs = Math.max(shard.evictions % BAR_LASTS === 0 ? 0 : shard.barUs, nowUs)
    const home = homeOf(print.low, slots)
    let nearest = -1
    let isOnTheWay = true
    let isNearestOnTheWay = true
    let nearestUs = Number.POSITIVE_INFINITY
    let left = taken < LOOKED_AT ? taken : LOOKED_AT
    for (let at = home; left > 0 && nearestUs > barUs; at = after(at, slots)) {
      const second = words[2 * at * width + 1]
      if (second === 0) {
        isOnTheWay = false
        continue
      }
      left -= 1
      const freshUs = care.freshAtUs(cells, at * width + 1, wide ? tagAt(shard, at) : second & 15)
      if (freshUs >= nearestUs) continue
      nearest = at
      isNearestOnTheWay = isOnTheWay
      nearestUs = freshUs
    }
    shard.barUs = nearestUs > barUs ? nearestUs : barUs
    care.evicted(cells, nearest * width + 1, tagAt(shard, nearest), number, nowUs)
    // No slot before it is empty: the newcomer replaces it where it is.
    if (isNearestOnTheWay) return nearest
    closeGap(shard, nearest)
    // What moved up may have been before the first empty slot, at the newcomer's home.
    return emptyFrom(shard, home)
  }

  /** Makes room for a newcomer whose own shard has no row that could go. */
  function evictElsewhere(nowUs: number): void {
    let number = rows.shard
    while (shards[number].taken === 0) number = (number + 1) & shardMask
    const shard = shards[number]
    // No newcomer takes the slot that it gives, which may still hold the row that goes.
    giveBack(shard, evict(shard, number, nowUs))
  }

  /** Copies a slot's row, of this shard or of the arrays that it had, into an empty slot. */
  function copySlot(
    words: Int32Array,
    cells: Float64Array,
    at: number,
    to: Shard,
    toAt: number,
  ): void {
    const from = at * width
    const into = toAt * width
    // The first cell is the fingerprint: bits that a float64 need not keep.
    to.words[2 * into] = words[2 * from]
    to.words[2 * into + 1] = words[2 * from + 1]
    for (let i = 1; i < width; i += 1) to.cells[into + i] = cells[from + i]
  }

  function giveBack(shard: Shard, at: number): void {
    closeGap(shard, at)
    shard.taken -= 1
    rows.size -= 1
  }

  /** Empties a slot, and moves up the rows behind it that would be cut off from their home. */
  function closeGap(shard: Shard, at: number): void {
    again = ''
    const { words, cells, slots } = shard
    let hole = at
    let next = after(at, slots)
    while (words[2 * next * width + 1] !== 0) {
      const home = homeOf(words[2 * next * width], slots)
      if (isCutOff(home, hole, next)) {
        copySlot(words, cells, next, shard, hole)
        hole = next
      }
      next = after(next, slots)
    }
    for (let i = 0; i < width; i += 1) cells[hole * width + i] = 0
  }

  /** Copies a shard's rows in use into arrays that they fill by half. */
  function grow(shard: Shard, nowUs: number): void {
    const { words, cells, slots, taken } = shard
    const keepsAll = slots <= KEPT_SLOTS
    const inUse: number[] = []
    for (let at = 0; at < slots; at += 1) {
      if (isEmpty(shard, at)) continue
      if (keepsAll || freshAtUs(shard, at) > nowUs) inUse.push(at)
    }
    rows.size -= taken - inUse.length
    shard.taken = inUse.length
    allot(shard, Math.max(8, 2 * (inUse.length + 1)))
    for (const at of inUse) {
      const home = homeOf(words[2 * at * width], shard.slots)
      copySlot(words, cells, at, shard, emptyFrom(shard, home))
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
    const at = slotAt()
    reshape(columns, columns, true)
    point(shards[rows.shard], at)
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
      // The cursor is on it, as when a hot key comes again.
      if (key === again) return true
      const { base } = rows
      again = ''
      hash(key)
      if (!locate()) return false
      // Not every key is remembered: to write down a new string costs as much as to hash it.
      if (rows.base === base) again = key
      return true
    },
    insert(_key, start, tag, nowUs) {
      if (tag > 15 && !wide) reshape(columns, columns, true)
      const shard = shards[rows.shard]
      const base = takeSlot(shard, nowUs) * width + 1
      const { words, cells } = shard
      words[2 * base - 2] = print.low
      words[2 * base - 1] = (print.high & ~15) | (wide ? 1 : tag)
      for (let i = 0; i < stride; i += 1) cells[base + i] = start[i]
      if (wide) cells[base + stride] = tag
      again = ''
      rows.cells = cells
      rows.base = base
      rows.tag = tag
    },
    retag,
    remove: () => giveBack(shards[rows.shard], slotAt()),
    each(visit) {
      shards.forEach((shard, number) => {
        rows.shard = number
        for (let at = 0; at < shard.slots; at += 1) {
          if (isEmpty(shard, at)) continue
          point(shard, at)
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
      hash(key)
      return idOf(print.low, print.high & ~15)
    },
    id() {
      const { words } = shards[rows.shard]
      return idOf(words[2 * rows.base - 2], words[2 * rows.base - 1] & ~15)
    },
    hasId(id) {
      again = ''
      const [low, high] = id.split(' ').map(Number)
      print.low = low
      print.high = high
      return locate()
    },
  }
  clear()
  return rows
}

function newShard(): Shard {
  return {
    words: new Int32Array(0),
    cells: new Float64Array(0),
    slots: 0,
    taken: 0,
    barUs: 0,
    evictions: 0,
  }
}

function idOf(low: number, high: number): string {
  return `${low} ${high}`
}
