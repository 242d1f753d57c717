import { SluiceError } from '../../core/errors.ts'
import { HEAD_WORDS, OWNER, type Region, WHERE } from './region.ts'

/** The state word of a bucket: its version, which counts changes, and two flags. */
const VERSION = 2 ** 30 - 1
const DEAD = 1 << 30
const LOCKED = 1 << 31

/**
 * A thread that waits for a lock spins this often before it sleeps, and moves the bucket after this
 * long.
 */
const SPINS = 50
const SLEEP_MS = 0.1
const STALL_MS = 10

/** A bucket's entry in `where`: 22 bits of place + 1, and how often it has moved. 0: at home. */
const PLACE_BITS = 22
const PLACE_MASK = (1 << PLACE_BITS) - 1

/**
 * The states of a place. 0 means taken for the home places, one per bucket, and free for spare
 * ones.
 */
const TAKEN = 1
const FREE = 2

/** MOST_PLACES is the maximum number of places for buckets in a table. */
export const MOST_PLACES = PLACE_MASK

/**
 * Bucket is a view of one bucket at a time. A bucket has slots that are read without a lock, as
 * with a seqlock, and changed in one atomic step. It has two bitmaps of the slots that hold a row;
 * an even or odd version selects the valid one.
 *
 * To change a bucket: `read` it; prepare the change privately; take the lock, which fails if
 * another thread has changed the bucket since; write into free slots; `commit`. The commit writes
 * the other bitmap and makes it valid by one compare-and-swap, so a thread that is terminated
 * anywhere leaves at most a lock behind. A thread that waits too long for a lock marks the bucket
 * dead, copies it to another place and updates `where`. If the owner of the lock was only slow, it
 * can still write to invalid parts of the dead place only: its commit fails, and it frees the place
 * and starts again.
 */
export interface Bucket {
  /** Offset of its head, in words. */
  head: number
  /** Bitmap of the slots that hold a row, with flags in bits that belong to no slot. */
  readonly live: Int32Array
  read(index: number): void
  /** Returns the offset of a slot. */
  slotAt(slot: number): number
  /**
   * Tells whether no thread has committed since `read`, so that all values read since are
   * consistent.
   */
  isUnchanged(): boolean
  /** Takes the lock; false if the bucket has changed or moved since `read`: then read again. */
  lock(): boolean
  /** Releases the lock without a change, if this thread holds it. */
  unlock(): void
  /**
   * Calls `write` with the lock held. `write` ends with a `commit`, or returns false to change
   * nothing. Returns false if `lock`, `write` or `commit` does.
   */
  change(write: () => boolean): boolean
  /**
   * Makes this bitmap valid and releases the lock; false if the bucket was moved: nothing has
   * changed.
   */
  commit(low: number, high: number): boolean
}

/** createBucket creates a view of a region's buckets. Tests get a call of `locked` at every lock. */
export function createBucket(region: Region, words: Int32Array, locked?: () => void): Bucket {
  const { slotWords, nearSlots, headWords, farWords } = region
  const { buckets, places, freeAt, headsAt, slotsAt } = region
  /** Word 0 is never notified, so a wait on it is a sleep. Stores to word 1 are memory fences. */
  const sleeper = new Int32Array(new SharedArrayBuffer(8))
  const live = new Int32Array(2)
  let index = 0
  /** The bucket's entry in `where` at `read`, and the place that it names. */
  let entry = 0
  let place = 0
  let far = 0
  let state = 0
  let holdsLock = false

  const headOf = (at: number) => headsAt + at * headWords
  const whereOf = (at: number) => headOf(at) + WHERE
  /** Offset of the far slots, extrapolated to slot 0. */
  const farOf = (at: number) => slotsAt + at * farWords - nearSlots * slotWords
  const placeOf = (at: number, entry: number) => (entry === 0 ? at : (entry & PLACE_MASK) - 1)
  /** Offset of the bitmap that is valid in this version. */
  const bitsOf = (head: number, version: number) => head + 1 + 2 * (version & 1)

  function read(wanted: number): void {
    index = wanted
    for (;;) {
      entry = words[whereOf(wanted)]
      place = placeOf(wanted, entry)
      bucket.head = headOf(place)
      far = farOf(place)
      state = words[bucket.head]
      if ((state & DEAD) === 0) break
      move(wanted, place)
    }
    const bits = bitsOf(bucket.head, state)
    live[0] = words[bits]
    live[1] = words[bits + 1]
  }

  function slotAt(slot: number): number {
    return (slot < nearSlots ? bucket.head + HEAD_WORDS : far) + slot * slotWords
  }

  function isUnchanged(): boolean {
    // The store is a fence: reads before it may not be reordered after the loads.
    Atomics.store(sleeper, 1, 0)
    const isSameVersion = ((Atomics.load(words, bucket.head) ^ state) & VERSION) === 0
    return isSameVersion && Atomics.load(words, whereOf(index)) === entry
  }

  function change(write: () => boolean): boolean {
    if (!lock()) return false
    try {
      return write()
    } finally {
      unlock()
    }
  }

  function unlock(): void {
    if (!holdsLock) return
    holdsLock = false
    const mine = state | LOCKED
    if (Atomics.compareExchange(words, bucket.head, mine, state) !== mine) leave(index, place)
  }

  function lock(): boolean {
    if ((state & LOCKED) !== 0) {
      awaitRelease()
      return false
    }
    const { head } = bucket
    const mine = state | LOCKED
    if (Atomics.compareExchange(words, head, state, mine) !== state) return false
    if (words[whereOf(index)] === entry) {
      holdsLock = true
      locked?.()
      return true
    }
    // The bucket was moved, and this place belongs to another bucket now, or will soon.
    if (Atomics.compareExchange(words, head, mine, state) === mine) return false
    // The other bucket was moved away because of this thread's lock, so this thread must free the
    // place.
    if (Atomics.load(words, head) === (state | DEAD)) leave(ownerOf(place), place)
    return false
  }

  function commit(low: number, high: number): boolean {
    const { head } = bucket
    const next = (state + 1) & VERSION
    const bits = bitsOf(head, next)
    words[bits] = low
    words[bits + 1] = high
    const mine = state | LOCKED
    const isDone = Atomics.compareExchange(words, head, mine, next) === mine
    holdsLock = false
    if (isDone) return true
    leave(index, place)
    return false
  }

  /**
   * Frees a place whose bucket was moved away while this thread held the lock. Only this thread may
   * do that, and only once the bucket is in another place.
   */
  function leave(owner: number, from: number): void {
    move(owner, from)
    free(from)
  }

  function ownerOf(at: number): number {
    const owner = words[headOf(at) + OWNER]
    return owner === 0 ? at : owner - 1
  }

  /** Waits a limited time until the lock is released; then moves the bucket. */
  function awaitRelease(): void {
    const isHeld = () => Atomics.load(words, bucket.head) === state
    for (let spins = 0; spins < SPINS; spins += 1) if (!isHeld()) return
    const untilMs = performance.now() + STALL_MS
    while (performance.now() < untilMs) {
      Atomics.wait(sleeper, 0, 0, SLEEP_MS)
      if (!isHeld()) return
    }
    move(index, place)
  }

  /** Moves a bucket out of a locked or dead place. Several threads may try at once. */
  function move(bucketIndex: number, from: number): void {
    const seenEntry = Atomics.load(words, whereOf(bucketIndex))
    if (placeOf(bucketIndex, seenEntry) !== from) return
    const to = takePlace()
    const [source, target] = [headOf(from), headOf(to)]
    const seen = Atomics.load(words, source)
    const version = seen & VERSION
    if ((seen & DEAD) === 0) {
      const isLocked = (seen & LOCKED) !== 0
      const kill = () => Atomics.compareExchange(words, source, seen, version | DEAD) === seen
      if (!isLocked || !kill()) {
        free(to)
        return
      }
    }
    copy(source + HEAD_WORDS, target + HEAD_WORDS, headWords - HEAD_WORDS)
    copy(slotsAt + from * farWords, slotsAt + to * farWords, farWords)
    // Versions of a place only increase, so that earlier readers notice the change.
    const next = (words[target] + 1) & VERSION
    words[bitsOf(target, next)] = words[bitsOf(source, version)]
    words[bitsOf(target, next) + 1] = words[bitsOf(source, version) + 1]
    words[target + OWNER] = bucketIndex + 1
    // Locked until `where` is updated: a thread with an old entry for this place must not use it.
    const mine = next | LOCKED
    Atomics.store(words, target, mine)
    const moved = (((seenEntry >>> PLACE_BITS) + 1) << PLACE_BITS) | (to + 1)
    if (Atomics.compareExchange(words, whereOf(bucketIndex), seenEntry, moved) !== seenEntry) {
      free(to)
    } else if (Atomics.compareExchange(words, target, mine, next) !== mine) {
      leave(bucketIndex, to)
    }
  }

  function copy(from: number, to: number, count: number): void {
    for (let i = 0; i < count; i += 1) words[to + i] = words[from + i]
  }

  function takePlace(): number {
    for (let i = 0; i < places; i += 1) {
      const at = (buckets + i) % places
      const seen = Atomics.load(words, freeAt + at)
      const isFree = seen === FREE || (seen === 0 && at >= buckets)
      if (isFree && Atomics.compareExchange(words, freeAt + at, seen, TAKEN) === seen) return at
    }
    throw new SluiceError(
      'SLUICE_STORE_FULL',
      `${places - buckets} threads were terminated while they wrote to this table of shared memory, ` +
        'and one more left a lock behind. Create a new store, and end threads between calls.',
    )
  }

  function free(at: number): void {
    // Threads that still look at this place must neither lock nor use it.
    Atomics.or(words, headOf(at), LOCKED | DEAD)
    Atomics.store(words, freeAt + at, FREE)
  }

  // Plain fields only: an accessor would switch the object to V8's slow dictionary mode.
  const bucket: Bucket = { head: 0, live, read, slotAt, isUnchanged, lock, unlock, change, commit }
  return bucket
}
