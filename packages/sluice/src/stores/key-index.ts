import { createFingerprint, newSecret } from './fingerprint.ts'
import { after, isCutOff, shardsFor } from './probing.ts'

/** Up to so many keys a `Map` is faster: all of it is in the cache, and V8 hashes faster. */
const SMALL = 65_536

/** Shard is a part of the index, with room of its own. */
interface Shard {
  words: Int32Array
  slots: number
  /** Slots that are taken. */
  taken: number
}

/** KeyIndex finds the row of a key. It keeps no keys: its owner does, by row. */
export interface KeyIndex {
  /** The row of a key, or −1. */
  find(key: string): number
  /** Right after a `find` that failed: gives that key a row, where it is kept by now. */
  add(row: number): void
  /** Forgets a row, as long as its key is kept. */
  remove(row: number): void
  clear(): void
}

/**
 * createKeyIndex is a `Map` from key to row number as long as it is small, and from then on a hash
 * table of row numbers for the keys in `keys`: with fewer cache misses, no holes after a removal and
 * no pause for growing. The table is cut into shards, each an array of slots:
 *
 *     [ hash: 32 bits ][ row + 1, or 0 when empty ]     int32
 *
 * The rest of the hash chooses the shard. A key is in one of the slots that follow from its home
 * without a gap (linear probing). At most three quarters of a shard are taken.
 */
export function createKeyIndex(keys: readonly string[], maxKeys: number): KeyIndex {
  const print = createFingerprint(newSecret())
  const { hash } = print
  const shards: Shard[] = Array.from({ length: shardsFor(maxKeys) }, newShard)
  const shardMask = shards.length - 1
  let map: Map<string, number> | undefined = new Map()

  /** Uses the top 16 bits; a shard has at most 65,536 slots. */
  const homeOf = (low: number, slots: number) => Math.imul(low >>> 16, slots) >>> 16

  function fill({ words, slots }: Shard, low: number, number: number): void {
    let at = homeOf(low, slots)
    while (words[2 * at + 1] !== 0) at = after(at, slots)
    words[2 * at] = low
    words[2 * at + 1] = number
  }

  function grow(shard: Shard): void {
    const { words } = shard
    shard.slots = Math.max(8, 2 * (shard.taken + 1))
    shard.words = new Int32Array(2 * shard.slots)
    for (let i = 0; i < words.length; i += 2) {
      if (words[i + 1] !== 0) fill(shard, words[i], words[i + 1])
    }
  }

  /** Empties a slot, and moves up those behind it that would be cut off from their home. */
  function empty(shard: Shard, at: number): void {
    const { words, slots } = shard
    let hole = at
    for (let next = after(at, slots); words[2 * next + 1] !== 0; next = after(next, slots)) {
      const home = homeOf(words[2 * next], slots)
      if (!isCutOff(home, hole, next)) continue
      words[2 * hole] = words[2 * next]
      words[2 * hole + 1] = words[2 * next + 1]
      hole = next
    }
    words[2 * hole] = 0
    words[2 * hole + 1] = 0
    shard.taken -= 1
  }

  /** Gives the key that was hashed last a row. */
  function put(row: number): void {
    const shard = shards[print.high & shardMask]
    if (4 * (shard.taken + 1) > 3 * shard.slots) grow(shard)
    shard.taken += 1
    fill(shard, print.low, row + 1)
  }

  function findInTable(key: string): number {
    hash(key)
    const { low } = print
    const { words, slots } = shards[print.high & shardMask]
    let at = homeOf(low, slots)
    for (;;) {
      const number = words[2 * at + 1]
      if (number === 0) return -1
      if (words[2 * at] === low && keys[number - 1] === key) return number - 1
      at = after(at, slots)
    }
  }

  function removeFromTable(row: number): void {
    const { low, high } = print
    hash(keys[row])
    const shard = shards[print.high & shardMask]
    let at = homeOf(print.low, shard.slots)
    while (shard.words[2 * at + 1] !== row + 1) at = after(at, shard.slots)
    empty(shard, at)
    // A newcomer may be about to be added.
    print.low = low
    print.high = high
  }

  function leaveMap(small: Map<string, number>): void {
    map = undefined
    for (const [key, row] of small) {
      hash(key)
      put(row)
    }
  }

  return {
    // Short, so that it is inlined: this is the hot path.
    find: (key) => (map === undefined ? findInTable(key) : (map.get(key) ?? -1)),
    add(row) {
      if (map === undefined) put(row)
      else if (map.set(keys[row], row).size > SMALL) leaveMap(map)
    },
    remove(row) {
      if (map === undefined) removeFromTable(row)
      else map.delete(keys[row])
    },
    clear() {
      map = new Map()
      for (let i = 0; i < shards.length; i += 1) shards[i] = newShard()
    },
  }
}

/** One empty slot, for every shard until it grows: nothing is written here. */
const NO_WORDS = new Int32Array(2)

function newShard(): Shard {
  return { words: NO_WORDS, slots: 1, taken: 0 }
}
