import { createLists } from '../../rows/lists.ts'
import type { RowCare } from '../../rows/rows.ts'
import type { Bucket } from './buckets.ts'
import { BLOCK_TAG, EVICTIONS, type Region, ROWS, SHARD_BITS, SLOTS } from './region.ts'
import type { SharedFloors } from './shared-floors.ts'
import { cellsAt, countBlocks, countLive, isLive, setLive, tagAt } from './slots.ts'

/** Rows looked at for the one nearest to fresh. */
const LOOKED_AT = 8

/** Eviction finds rows that can make way for others, and sees to it that nobody is forgiven. */
export interface Eviction {
  /** Given by the table, before anything else. */
  care: RowCare
  /**
   * The slot of the row nearest to fresh among some of a bucket, from slot `start` on; −1 if there
   * is none. A block that has ended is fresh; others are passed over, and all of them unless
   * `orBlock` is set.
   */
  nearest(bucket: Bucket, start: number, orBlock: boolean, nowUs: number, except: number): number
  /** Raises the floor, not yet committed, to a row that has to go; true if the row is in use. */
  raise(bucket: Bucket, slot: number, shard: number, nowUs: number): boolean
  /** Evicts rows from other buckets than `home` until there are no more than `maxKeys`. */
  trim(home: number, nowUs: number): void
}

/** createEviction works on buckets that others read, and on `other` for itself. */
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
      // The newcomer's decision is committed and must not fail any more: the next newcomer trims.
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
    // Rows have moved on meanwhile, or a thread was terminated before it could count.
    Atomics.compareExchange(words, ROWS, counted, countRows())
    return false
  }

  /** Evicts a row of the bucket that was read, unless another thread changes it or the floor. */
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
