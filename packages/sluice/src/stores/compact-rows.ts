// Longer than our files are meant to be: a hash table is understood best in one piece.
import { createFingerprint, newSecret } from './fingerprint.ts'
import { type Column, strideOf } from './layout.ts'
import { isCutOff, shardsFor } from './probing.ts'
import { moveCells, type RowCare, type Rows } from './rows.ts'

/** Slots of a shard that are taken at most, and slots for each row when it has grown. */
const MOST_TAKEN = 0.75
const ROOM = 2

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
 * of a slot is 0 only when it is empty. A slot is known by where it begins in `words`.
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
  /**
   * Cells of a row, and words of a slot. Tags above 15 do not fit into four bits: once there is one,
   * a slot is `wide` and has a cell more, for its tag.
   */
  const shape = { stride: 0, step: 2, wide: false }
  let columns: readonly Column[] = []
  /** The key of the row at the cursor, if it was found twice in a row. */
  let again = ''

  /** Uses the top 16 bits; a shard has at most 65,536 slots. */
  const homeOf = (low: number, slots: number) => (Math.imul(low >>> 16, slots) >>> 16) * shape.step
  const isEmpty = ({ words }: Shard, at: number) => words[at + 1] === 0

  /** The slot that follows another; the first follows the last. */
  function after(at: number, { words }: Shard): number {
    const next = at + shape.step
    return next === words.length ? 0 : next
  }

  function allot(shard: Shard, slots: number): void {
    again = ''
    const buffer = new ArrayBuffer(4 * shape.step * slots)
    shard.words = new Int32Array(buffer)
    shard.cells = new Float64Array(buffer)
    shard.slots = slots
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
    return shape.wide ? cells[cellOf(at) + shape.stride] : words[at + 1] & 15
  }

  function point(shard: Shard, at: number): void {
    again = ''
    rows.cells = shard.cells
    rows.base = cellOf(at)
    rows.tag = tagAt(shard, at)
  }

  /** The slot at the cursor. */
  const slotAt = () => 2 * (rows.base - 1)

  function freshAtUs(shard: Shard, at: number): number {
    return care.freshAtUs(shard.cells, cellOf(at), tagAt(shard, at))
  }

  /** A slot for the newcomer that was just looked for, in its shard, on its way from home. */
  function takeSlot(shard: Shard, nowUs: number): number {
    const isFull = rows.size >= maxRows
    if (isFull && shard.taken > 0) return evict(shard, rows.shard, nowUs)
    if (isFull) evictElsewhere(nowUs)
    if (shard.taken + 1 > MOST_TAKEN * shard.slots) {
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
    for (let at = homeOf(print.low, shard.slots); !isEmpty(shard, at); at = after(at, shard)) {
      if (freshAtUs(shard, at) <= nowUs) return at
    }
    return -1
  }

  function emptyFrom(shard: Shard, from: number): number {
    let at = from
    while (!isEmpty(shard, at)) at = after(at, shard)
    return at
  }

  /**
   * Evicts the first row from the newcomer's home on that is fresh by the shard's bar, and gives the
   * newcomer's slot in its place. If none of some rows is, the nearest of them goes, and becomes the
   * bar: so those that go are about as near to fresh as the nearest of many, though one or two are
   * looked at.
   */
  function evict(shard: Shard, number: number, nowUs: number): number {
    shard.evictions += 1
    const barUs = Math.max(shard.evictions % BAR_LASTS === 0 ? 0 : shard.barUs, nowUs)
    const home = homeOf(print.low, shard.slots)
    let nearest = -1
    let isOnTheWay = true
    let isNearestOnTheWay = true
    let nearestUs = Number.POSITIVE_INFINITY
    let left = shard.taken < LOOKED_AT ? shard.taken : LOOKED_AT
    for (let at = home; left > 0 && nearestUs > barUs; at = after(at, shard)) {
      if (isEmpty(shard, at)) {
        isOnTheWay = false
        continue
      }
      left -= 1
      const freshUs = freshAtUs(shard, at)
      if (freshUs >= nearestUs) continue
      nearest = at
      isNearestOnTheWay = isOnTheWay
      nearestUs = freshUs
    }
    shard.barUs = nearestUs > barUs ? nearestUs : barUs
    if (nearestUs > nowUs) {
      care.evicted(shard.cells, cellOf(nearest), tagAt(shard, nearest), number, nowUs)
    }
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
    // The first cell is the fingerprint: bits that a float64 need not keep.
    to.words[toAt] = words[at]
    to.words[toAt + 1] = words[at + 1]
    const from = cellOf(at)
    const into = cellOf(toAt)
    for (let i = 0; i < shape.step / 2 - 1; i += 1) to.cells[into + i] = cells[from + i]
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
    for (let next = after(at, shard); !isEmpty(shard, next); next = after(next, shard)) {
      if (!isCutOff(homeOf(words[next], slots), hole, next)) continue
      copySlot(words, cells, next, shard, hole)
      hole = next
    }
    words[hole + 1] = 0
  }

  /** Copies a shard's rows in use into larger arrays. */
  function grow(shard: Shard, nowUs: number): void {
    const { words, cells, slots, taken } = shard
    const keepsAll = slots <= KEPT_SLOTS
    const inUse: number[] = []
    for (let at = 0; at < words.length; at += shape.step) {
      if (isEmpty(shard, at)) continue
      if (keepsAll || freshAtUs(shard, at) > nowUs) inUse.push(at)
    }
    rows.size -= taken - inUse.length
    shard.taken = inUse.length
    allot(shard, Math.max(8, Math.ceil(ROOM * (inUse.length + 1))))
    for (const at of inUse) {
      copySlot(words, cells, at, shard, emptyFrom(shard, homeOf(words[at], shard.slots)))
    }
  }

  /** Gives slots another shape; every row stays in its slot. */
  function reshape(newColumns: readonly Column[], wide: boolean): void {
    const [before, old] = [columns, { ...shape }]
    columns = newColumns
    shape.stride = strideOf(columns)
    shape.wide = wide
    shape.step = 2 * (1 + shape.stride + (wide ? 1 : 0))
    for (const shard of shards) {
      const { words, cells, slots } = shard
      allot(shard, slots)
      for (let i = 0; i < slots; i += 1) {
        const [from, to] = [i * old.step, i * shape.step]
        const second = words[from + 1]
        if (second === 0) continue
        const tag = old.wide ? cells[cellOf(from) + old.stride] : second & 15
        shard.words[to] = words[from]
        shard.words[to + 1] = second
        writeTag(shard, to, tag)
        moveCells(cells, cellOf(from), before, shard.cells, cellOf(to), columns)
      }
    }
  }

  function writeTag({ words, cells }: Shard, at: number, tag: number): void {
    words[at + 1] = (words[at + 1] & ~15) | (shape.wide ? 1 : tag)
    if (shape.wide) cells[cellOf(at) + shape.stride] = tag
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

    aim(key) {
      // As when a hot key comes again: comparing is cheaper than hashing.
      if (key === again) return true
      again = ''
      hash(key)
      return false
    },
    find(key) {
      const { low } = print
      const high = print.high & ~15
      const { step } = shape
      const cursor = rows
      const number = (high >>> 4) & shardMask
      const shard = shards[number]
      const { words, slots } = shard
      cursor.shard = number
      // What homeOf(), after() and point() do, in line: this is the hot path.
      let at = (Math.imul(low >>> 16, slots) >>> 16) * step
      let second = words[at + 1]
      while (second !== 0) {
        if (words[at] === low && (second & ~15) === high) {
          const base = cellOf(at)
          // Not every key is remembered: to write down a new string costs as much as to hash it.
          if (base === cursor.base) again = key
          cursor.cells = shard.cells
          cursor.base = base
          cursor.tag = shape.wide ? tagAt(shard, at) : second & 15
          return true
        }
        at += step
        if (at === words.length) at = 0
        second = words[at + 1]
      }
      return false
    },
    insert(_key, start, tag, nowUs) {
      if (tag > 15 && !shape.wide) reshape(columns, true)
      const shard = shards[rows.shard]
      const at = takeSlot(shard, nowUs)
      const { words, cells } = shard
      words[at] = print.low
      words[at + 1] = print.high
      writeTag(shard, at, tag)
      again = ''
      rows.cells = cells
      rows.base = cellOf(at)
      rows.tag = tag
      for (let i = 0; i < shape.stride; i += 1) cells[rows.base + i] = start[i]
    },
    retag(tag) {
      if (tag > 15 && !shape.wide) {
        const slot = slotAt() / shape.step
        reshape(columns, true)
        point(shards[rows.shard], slot * shape.step)
      }
      writeTag(shards[rows.shard], slotAt(), tag)
      rows.tag = tag
    },
    remove: () => giveBack(shards[rows.shard], slotAt()),
    each(visit) {
      shards.forEach((shard, number) => {
        rows.shard = number
        for (let at = 0; at < shard.words.length; at += shape.step) {
          if (isEmpty(shard, at)) continue
          point(shard, at)
          visit()
        }
      })
    },
    clear,
    move: (_before, after) => reshape(after, shape.wide),

    idOf(key) {
      hash(key)
      return idOf(print.low, print.high & ~15)
    },
    id() {
      const { words } = shards[rows.shard]
      return idOf(words[slotAt()], words[slotAt() + 1] & ~15)
    },
    hasId(id) {
      again = ''
      const [low, high] = id.split(' ').map(Number)
      print.low = low
      print.high = high
      return rows.find('')
    },
  }
  clear()
  return rows
}

/** cellOf is where the row of a slot begins in the cells. */
const cellOf = (at: number) => (at >> 1) + 1

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
