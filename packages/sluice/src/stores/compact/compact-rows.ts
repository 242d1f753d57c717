// Longer than the other files: a hash table is easiest to understand in one piece.

import { type Column, strideOf } from '../../rows/layout.ts'
import { moveCells, type RowCare, type Rows } from '../../rows/rows.ts'
import { createFingerprint } from '../hash/fingerprint.ts'
import { isCrowded, isCutOff, shardsFor, slotsFor } from '../hash/probing.ts'

/** Rows examined per eviction, and evictions after which a shard's `barUs` is reset. */
const LOOKED_AT = 16
const BAR_LASTS = 1_024

/** Shards of up to this many slots keep fresh rows: their keys may come back. */
const KEPT_SLOTS = 256

/** Shard is a part of the table with its own arrays. */
interface Shard {
  words: Int32Array
  cells: Float64Array
  slots: number
  /** Number of occupied slots. */
  taken: number
  /** A row that is fresh by this instant is evicted at once; and the number of evictions so far. */
  barUs: number
  evictions: number
}

/**
 * createCompactRows creates a hash table in typed arrays. It consists of shards, so that growing
 * never stalls. It keeps fingerprints, not keys.
 *
 * A slot has 8 bytes for fingerprint and tag, followed by the row's cells, so that a look-up costs
 * one cache miss:
 *
 *     words   [ low: 32 bits ][ high: 28 bits | tag: 4 bits ]           int32
 *     cells   [          the same 8 bytes          ][ cell ] … [ tag ]  float64, on the same buffer
 *
 * The last cell exists only once tags need more than four bits.
 *
 * The high word selects a key's shard, the low word its home slot. Collisions are resolved by
 * linear probing. A tag is at least 1, so the second word of a slot is 0 only if the slot is empty.
 * Slots are identified by their offset in `words`.
 *
 * Fresh rows count as absent, except in small shards: a new key takes the slot of a fresh row before
 * the shard grows, and growing drops fresh rows. Once there are `maxRows` rows, a new key evicts a
 * nearly fresh row.
 */
export function createCompactRows(maxRows: number, care: RowCare): Rows {
  const print = createFingerprint()
  const { hash } = print
  const shards: Shard[] = Array.from({ length: shardsFor(maxRows) }, newShard)
  const shardMask = shards.length - 1
  /**
   * Cells per row (`stride`) and words per slot (`step`). A tag above 15 does not fit into four
   * bits: from the first one on, slots are `wide` and have one more cell, for the tag.
   */
  const shape = { stride: 0, step: 2, wide: false }
  let columns: readonly Column[] = []
  /** The key of the row at the cursor, if the last two look-ups found it. */
  let again = ''

  /** Uses the top 16 bits; a shard has at most 65,536 slots. */
  const homeOf = ({ slots }: Shard, low: number) =>
    (Math.imul(low >>> 16, slots) >>> 16) * shape.step
  const isEmpty = ({ words }: Shard, at: number) => words[at + 1] === 0

  /** Returns the next slot; the first follows the last. */
  function after({ words }: Shard, at: number): number {
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

  function tagAt({ words, cells }: Shard, at: number): number {
    return shape.wide ? cells[cellOf(at) + shape.stride] : words[at + 1] & 15
  }

  function point(shard: Shard, at: number): void {
    again = ''
    rows.cells = shard.cells
    rows.base = cellOf(at)
    rows.tag = tagAt(shard, at)
  }

  /** Returns the slot at the cursor. */
  const slotAt = () => 2 * (rows.base - 1)

  function freshAtUs(shard: Shard, at: number): number {
    return care.freshAtUs(shard.cells, cellOf(at), tagAt(shard, at))
  }

  /** Returns a slot for the new key that was just looked up, on its probe sequence. */
  function takeSlot(shard: Shard, nowUs: number): number {
    const isFull = rows.size >= maxRows
    if (isFull && shard.taken > 0) return evict(shard, rows.shard, nowUs)
    if (isFull) evictElsewhere(nowUs)
    if (isCrowded(shard.taken, shard.slots)) {
      const fresh = shard.slots > KEPT_SLOTS ? freshOnTheWay(shard, nowUs) : -1
      if (fresh >= 0) return fresh
      grow(shard, nowUs)
    }
    shard.taken += 1
    rows.size += 1
    return emptyFrom(shard, homeOf(shard, print.low))
  }

  /** Returns the first fresh row's slot on the new key's probe sequence, or −1. */
  function freshOnTheWay(shard: Shard, nowUs: number): number {
    for (let at = homeOf(shard, print.low); !isEmpty(shard, at); at = after(shard, at)) {
      if (freshAtUs(shard, at) <= nowUs) return at
    }
    return -1
  }

  function emptyFrom(shard: Shard, from: number): number {
    let at = from
    while (!isEmpty(shard, at)) at = after(shard, at)
    return at
  }

  /**
   * Evicts a row and returns the slot for the new key. Probing from the new key's home, it takes
   * the first row that is fresh by the shard's `barUs`. If none of the examined rows is, it takes
   * the one that is fresh first and raises `barUs` to its fresh time. So evicted rows are about as
   * near to fresh as the best of many rows, although most evictions examine only one or two.
   */
  function evict(shard: Shard, number: number, nowUs: number): number {
    shard.evictions += 1
    const barUs = Math.max(shard.evictions % BAR_LASTS === 0 ? 0 : shard.barUs, nowUs)
    const home = homeOf(shard, print.low)
    let nearest = -1
    let nearestUs = Number.POSITIVE_INFINITY
    let left = Math.min(shard.taken, LOOKED_AT)
    for (let at = home; left > 0 && nearestUs > barUs; at = after(shard, at)) {
      if (isEmpty(shard, at)) continue
      left -= 1
      const freshUs = freshAtUs(shard, at)
      if (freshUs >= nearestUs) continue
      nearest = at
      nearestUs = freshUs
    }
    shard.barUs = Math.max(nearestUs, barUs)
    if (nearestUs > nowUs) {
      care.evicted(shard.cells, cellOf(nearest), tagAt(shard, nearest), number, nowUs)
    }
    shard.words[nearest + 1] = 0
    // The usual case: the row was on the new key's probe sequence, so the key takes its slot.
    if (emptyFrom(shard, home) === nearest) return nearest
    closeGap(shard, nearest)
    return emptyFrom(shard, home)
  }

  /** Makes room for a new key whose own shard is empty. */
  function evictElsewhere(nowUs: number): void {
    let number = rows.shard
    while (shards[number].taken === 0) number = (number + 1) & shardMask
    const shard = shards[number]
    giveBack(shard, evict(shard, number, nowUs))
  }

  /** Copies a slot word by word: as a float64, a fingerprint that is a NaN could change its bits. */
  function copySlot(from: Int32Array, at: number, to: Int32Array, toAt: number): void {
    for (let i = 0; i < shape.step; i += 1) to[toAt + i] = from[at + i]
  }

  function giveBack(shard: Shard, at: number): void {
    closeGap(shard, at)
    shard.taken -= 1
    rows.size -= 1
  }

  /** Empties a slot, and moves later rows up so that probes still reach them. */
  function closeGap(shard: Shard, at: number): void {
    again = ''
    const { words } = shard
    let hole = at
    for (let next = after(shard, at); !isEmpty(shard, next); next = after(shard, next)) {
      if (!isCutOff(homeOf(shard, words[next]), hole, next)) continue
      copySlot(words, next, words, hole)
      hole = next
    }
    words[hole + 1] = 0
  }

  /** Copies a shard's rows in use into larger arrays. */
  function grow(shard: Shard, nowUs: number): void {
    const { words, slots, taken } = shard
    const keepsAll = slots <= KEPT_SLOTS
    const inUse: number[] = []
    for (let at = 0; at < words.length; at += shape.step) {
      if (isEmpty(shard, at)) continue
      if (keepsAll || freshAtUs(shard, at) > nowUs) inUse.push(at)
    }
    rows.size -= taken - inUse.length
    shard.taken = inUse.length
    allot(shard, slotsFor(inUse.length + 1))
    for (const at of inUse) {
      copySlot(words, at, shard.words, emptyFrom(shard, homeOf(shard, words[at])))
    }
  }

  /** Changes the shape of slots. Every row keeps its slot number. */
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

  // Plain fields only: an accessor would switch the object to V8's slow dictionary mode.
  const rows: Rows = {
    cells: new Float64Array(0),
    base: 0,
    lists: care.lists,
    tag: 0,
    shard: 0,
    size: 0,
    maxRows,
    shards: shards.length,
    holdsLists: false,
    holdsKeys: false,

    aim(key) {
      // For a hot key: comparing is cheaper than hashing.
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
      // Hot path: homeOf(), after() and point(), inlined by hand.
      let at = (Math.imul(low >>> 16, slots) >>> 16) * step
      let second = words[at + 1]
      while (second !== 0) {
        if (words[at] === low && (second & ~15) === high) {
          const base = cellOf(at)
          // Remember only a repeated key: storing a new string costs as much as hashing it.
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
      shard.words[at] = print.low
      shard.words[at + 1] = print.high
      writeTag(shard, at, tag)
      point(shard, at)
      for (let i = 0; i < shape.stride; i += 1) rows.cells[rows.base + i] = start[i]
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
    clear() {
      again = ''
      for (let i = 0; i < shards.length; i += 1) shards[i] = newShard()
      rows.size = 0
    },
    move: (_before, newColumns) => reshape(newColumns, shape.wide),

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
  return rows
}

/** Returns where the row of a slot begins in `cells`. */
const cellOf = (at: number) => (at >> 1) + 1

/** One empty slot of any shape, shared by all shards until they grow. Never written. */
const NO_WORDS = new Int32Array(2)
const NO_CELLS = new Float64Array(NO_WORDS.buffer)

function newShard(): Shard {
  return { words: NO_WORDS, cells: NO_CELLS, slots: 1, taken: 0, barUs: 0, evictions: 0 }
}

function idOf(low: number, high: number): string {
  return `${low} ${high}`
}
