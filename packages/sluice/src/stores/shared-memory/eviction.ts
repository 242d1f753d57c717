import { createLists } from '../../rows/lists.ts'
import type { RowCare } from '../../rows/rows.ts'
import type { Bucket } from './buckets.ts'
import { BLOCK_TAG, EVICTIONS, type Region, ROWS, SHARD_BITS, SLOTS } from './region.ts'
import type { SharedFloors } from './shared-floors.ts'
import { cellsAt, countBlocks, countLive, isLive, setLive, tagAt } from './slots.ts'

/** Rows examined to find the one nearest to fresh. */
const LOOKED_AT = 8

/** Eviction selects rows to evict, and raises the floor to them first. */
export interface Eviction {
  /** The callbacks of the table, which sets them before the first call. */
  care: RowCare
  /**
   * Returns the slot of the row nearest to fresh among several of a bucket, from slot `start` on;
   * −1 if there is none. With `orBlock`, an ended block counts as a fresh row. Other blocks are
   * skipped.
   */
  nearest(bucket: Bucket, start: number, orBlock: boolean, nowUs: number, except: number): number
  /** Raises the uncommitted floor to a row that is being evicted; true if that row is in use. */
  raise(bucket: Bucket, slot: number, shard: number, nowUs: number): boolean
  /** Evicts rows from buckets other than `home` until there are at most `maxKeys`. */
  trim(home: number, nowUs: number): void
}

/** createEviction works on buckets that the caller has read, and uses `other` as its own view. */
export function createEviction(
  region: Region,
  words: Int32Array,
  cells: Float64Array,
  other: Bucket,
  floors: SharedFloors,
): Eviction {
  const { homes, maxKeys } = region
  const live = new Int32Array(2)

  function nearest(
    bucket: Bucket,
    start: number,
    orBlock: boolean,
    nowUs: number,
    except: number,
  ): number {
    let found = -1
    let foundUs = Number.POSITIVE_INFINITY
    let looked = 0
    for (let i = 0; i < SLOTS && looked < LOOKED_AT; i += 1) {
      const slot = (start + i) % SLOTS
      if (slot === except || !isLive(bucket.live, slot)) continue
      const tag = tagAt(words, bucket, slot)
      const from = cellsAt(bucket, slot)
      if (tag === BLOCK_TAG && (!orBlock || cells[from] > nowUs)) continue
      const freshUs = tag === BLOCK_TAG ? 0 : eviction.care.freshAtUs(cells, from, tag)
      looked += 1
      if (freshUs >= foundUs) continue
      found = slot
      foundUs = freshUs
    }
    return found
  }

  function raise(bucket: Bucket, slot: number, shard: number, nowUs: number): boolean {
    const [from, tag] = [cellsAt(bucket, slot), tagAt(words, bucket, slot)]
    if (tag === BLOCK_TAG || eviction.care.freshAtUs(cells, from, tag) <= nowUs) return false
    eviction.care.evicted(cells, from, tag, shard, nowUs)
    return true
  }

  function trim(home: number, nowUs: number): void {
    try {
      while (words[ROWS] > maxKeys && evictNext(home, nowUs));
    } catch {
      // The new key's decision is committed and must not fail now. The next insert trims.
    }
  }

  /** Tries to evict a row from the next bucket after `home` that has one; false if none has. */
  function evictNext(home: number, nowUs: number): boolean {
    const counted = Atomics.load(words, ROWS)
    for (let i = 1; i < homes; i += 1) {
      const index = (home + i) % homes
      other.read(index)
      const slot = nearest(other, 0, false, nowUs, -1)
      if (slot < 0) continue
      evict(slot, index >> SHARD_BITS, nowUs)
      return true
    }
    // The count is off: rows have changed meanwhile, or a terminated thread did not count.
    Atomics.compareExchange(words, ROWS, counted, countRows())
    return false
  }

  /** Evicts a row of the bucket read last, unless another thread changes the bucket or the floor. */
  function evict(slot: number, shard: number, nowUs: number): void {
    let isInUse = false
    floors.begin()
    const isGone = other.change(() => {
      isInUse = raise(other, slot, shard, nowUs)
      if (!floors.commit()) return false
      live.set(other.live)
      setLive(live, slot, false)
      return other.commit(live[0], live[1])
    })
    if (isGone) Atomics.sub(words, ROWS, 1)
    if (isGone && isInUse) Atomics.add(words, EVICTIONS, 1)
  }

  function countRows(): number {
    let count = 0
    for (let index = 0; index < homes; index += 1) {
      other.read(index)
      count += countLive(other.live) - countBlocks(words, other, other.live)
    }
    return count
  }

  const none: RowCare = { lists: createLists(), freshAtUs: () => 0, evicted() {}, dropped() {} }
  const eviction: Eviction = { care: none, nearest, raise, trim }
  return eviction
}
