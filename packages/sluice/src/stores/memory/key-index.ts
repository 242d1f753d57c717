import { createFingerprint } from '../hash/fingerprint.ts'
import { isCrowded, isCutOff, shardsFor, slotsFor } from '../hash/probing.ts'

/** Shard is a part of the index with its own arrays. */
interface Shard {
  words: Int32Array
  slots: number
  /** Number of occupied slots. */
  taken: number
}

/** KeyIndex maps keys to row numbers. Its owner keeps the keys, by row number. */
export interface KeyIndex {
  /** Hashes a key, ready for `find`; see `Rows`. */
  aim(key: string): void
  /** Returns the row of the key given to `aim`, or −1. */
  find(key: string): number
  /** Adds the key given to `aim`, which its owner has stored at `row`. */
  add(row: number): void
  /** Removes a row. Its owner must still have the key. */
  remove(row: number): void
  clear(): void
}

/**
 * createKeyIndex creates a hash table of row numbers for the keys in `keys`. Compared with a `Map`
 * it has fewer cache misses, no tombstones and no pause for growing, and it separates hashing from
 * probing. The table consists of shards, each an array of slots:
 *
 *     [ hash: 32 bits ][ row + 1, or 0 when empty ]     int32
 *
 * The other half of the hash selects the shard. Collisions are resolved by linear probing from the
 * key's home slot. Slots are identified by their offset in the array.
 */
export function createKeyIndex(keys: readonly string[], maxKeys: number): KeyIndex {
  const print = createFingerprint()
  const { hash } = print
  const shards: Shard[] = Array.from({ length: shardsFor(maxKeys) }, newShard)
  const shardMask = shards.length - 1

  /** Uses the top 16 bits; a shard has at most 65,536 slots. */
  const homeOf = (low: number, slots: number) => 2 * (Math.imul(low >>> 16, slots) >>> 16)

  function fill({ words, slots }: Shard, low: number, number: number): void {
    let at = homeOf(low, slots)
    while (words[at + 1] !== 0) at = after(at, words)
    words[at] = low
    words[at + 1] = number
  }

  function grow(shard: Shard): void {
    const { words } = shard
    shard.slots = slotsFor(shard.taken + 1)
    shard.words = new Int32Array(2 * shard.slots)
    for (let i = 0; i < words.length; i += 2) {
      if (words[i + 1] !== 0) fill(shard, words[i], words[i + 1])
    }
  }

  /** Empties a slot, and moves later entries up so that probes still reach them. */
  function empty(shard: Shard, at: number): void {
    const { words, slots } = shard
    let hole = at
    for (let next = after(at, words); words[next + 1] !== 0; next = after(next, words)) {
      const home = homeOf(words[next], slots)
      if (!isCutOff(home, hole, next)) continue
      words[hole] = words[next]
      words[hole + 1] = words[next + 1]
      hole = next
    }
    words[hole + 1] = 0
    shard.taken -= 1
  }

  return {
    aim: hash,
    find(key) {
      const { low } = print
      const { words, slots } = shards[print.high & shardMask]
      let at = homeOf(low, slots)
      for (;;) {
        const number = words[at + 1]
        if (number === 0) return -1
        if (words[at] === low && keys[number - 1] === key) return number - 1
        at = after(at, words)
      }
    },
    add(row) {
      const shard = shards[print.high & shardMask]
      if (isCrowded(shard.taken, shard.slots)) grow(shard)
      shard.taken += 1
      fill(shard, print.low, row + 1)
    },
    remove(row) {
      const { low, high } = print
      hash(keys[row])
      const shard = shards[print.high & shardMask]
      let at = homeOf(print.low, shard.slots)
      while (shard.words[at + 1] !== row + 1) at = after(at, shard.words)
      empty(shard, at)
      // Keep the hash of the key given to `aim`: `add` may follow.
      print.low = low
      print.high = high
    },
    clear() {
      for (let i = 0; i < shards.length; i += 1) shards[i] = newShard()
    },
  }
}

/** One empty slot, shared by all shards until they grow. Never written. */
const NO_WORDS = new Int32Array(2)

function newShard(): Shard {
  return { words: NO_WORDS, slots: 1, taken: 0 }
}

/** Returns the next slot; the first follows the last. */
function after(at: number, { length }: Int32Array): number {
  return at + 2 === length ? 0 : at + 2
}
