import { SluiceError } from '../../core/errors.ts'
import { HEAD_WORDS, OWNER, type Region, WHERE } from './region.ts'

/** A bucket's state: the number of changes, and two flags. */
const VERSION = 2 ** 30 - 1
const DEAD = 1 << 30
const LOCKED = 1 << 31

/** Who waits for a lock looks so often before it sleeps, and takes a bucket away after so long. */
const SPINS = 50
const SLEEP_MS = 0.1
const STALL_MS = 10

/** A bucket's entry in `where`: 22 bits of place + 1, and how often it was moved. 0: at home. */
const PLACE_BITS = 22
const PLACE_MASK = (1 << PLACE_BITS) - 1

/** What a place is: 0 is `TAKEN` for the first places, one for each bucket, else `FREE`. */
const TAKEN = 1
const FREE = 2

/** MOST_PLACES is how many places for buckets a table can have. */
export const MOST_PLACES = PLACE_MASK

/**
 * Bucket is a view of one bucket at a time: 64 slots that are read without a lock and changed in
 * one step. It has two sets of bits for the slots that hold a row; whether its version is even or
 * odd tells which of them counts.
 *
 * To change it: `read`; work out privately what to write; take the lock, which fails if anybody was
 * faster; write into slots that hold no row; `commit`, which writes the set of bits that does not
 * count and makes it count, by one compare-and-swap. So a thread that is stopped anywhere leaves
 * nothing half done but a lock. Whoever waits too long for that marks the bucket dead, copies it to
 * another place and makes `where` point there. Should the thread only have been slow, all it can
 * still write to is what does not count at the dead place: its commit fails, it gives the place back
 * and begins again.
 */
export interface Bucket {
  /** Where its head begins, in words. */
  head: number
  /** The slots that hold a row, a bit each, and flags in bits that belong to no slot. */
  readonly live: Int32Array
  read(index: number): void
  /** Where a slot begins. */
  slotAt(slot: number): number
  /** Whether nothing was committed since `read`, so that what was seen since belongs together. */
  isUnchanged(): boolean
  /** Takes the lock; false if the bucket is not as or where it was read: then read again. */
  lock(): boolean
  /** Gives the lock back, with nothing changed, if it is held. */
  unlock(): void
  /**
   * Calls `write` with the lock held. It ends with a `commit`, or returns false to change nothing.
   * False as `lock`, `write` and `commit`.
   */
  change(write: () => boolean): boolean
  /** Makes these slots hold rows, and gives the lock back; false if nothing was changed after all. */
  commit(low: number, high: number): boolean
}

/** createBucket views the buckets of a region. `locked` is called with every lock; for tests. */
export function createBucket(region: Region, words: Int32Array, locked?: () => void): Bucket {
  const { slotWords, nearSlots, headWords, farWords } = region
  const { buckets, places, freeAt, headsAt, slotsAt } = region
  /** Never woken: a wait on it is a sleep. And a word of this thread alone, to order reads by. */
  const sleeper = new Int32Array(new SharedArrayBuffer(8))
  const live = new Int32Array(2)
  let index = 0
  /** Its entry in `where` when it was read, and the place that says. */
  let entry = 0
  let place = 0
  let far = 0
  let state = 0
  let holdsLock = false

  const headOf = (at: number) => headsAt + at * headWords
  const whereOf = (at: number) => headOf(at) + WHERE
  /** As if the far slots began with number 0. */
  const farOf = (at: number) => slotsAt + at * farWords - nearSlots * slotWords
  const placeOf = (at: number, entry: number) => (entry === 0 ? at : (entry & PLACE_MASK) - 1)
  /** Where the set of bits is that counts in this version. */
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
    // The store keeps the reads before it from being done after the loads.
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
    // The bucket was moved, and this place is another one's by now, or about to be.
    if (Atomics.compareExchange(words, head, mine, state) === mine) return false
    // Taken away from that one, for it was this thread that held the lock.
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
   * Gives back a place that was taken away while this thread held its lock; nobody else may. The
   * bucket has to be somewhere else first.
   */
  function leave(owner: number, from: number): void {
    move(owner, from)
    free(from)
  }

  function ownerOf(at: number): number {
    const owner = words[headOf(at) + OWNER]
    return owner === 0 ? at : owner - 1
  }

  /** Waits until the lock that was seen is gone, at most for a while; then moves the bucket. */
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

  /** Moves a bucket out of a place that is locked or dead. Any number of threads may try. */
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
    // Versions of a place only ever go up, so that who looked here before will notice.
    const next = (words[target] + 1) & VERSION
    words[bitsOf(target, next)] = words[bitsOf(source, version)]
    words[bitsOf(target, next) + 1] = words[bitsOf(source, version) + 1]
    words[target + OWNER] = bucketIndex + 1
    // Locked until it is known to all: who still takes this place for an earlier one keeps off.
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
        'and another one has left a lock behind. Make a new store, and end threads between calls.',
    )
  }

  function free(at: number): void {
    // Neither locked nor alive for whoever still looks at it.
    Atomics.or(words, headOf(at), LOCKED | DEAD)
    Atomics.store(words, freeAt + at, FREE)
  }

  // Plain fields only: an accessor would turn the object into a slow one.
  const bucket: Bucket = { head: 0, live, read, slotAt, isUnchanged, lock, unlock, change, commit }
  return bucket
}
