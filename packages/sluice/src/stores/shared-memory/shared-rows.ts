// Longer than the other files: reading and writing a key belong together.
import type { Blocks } from '../../rows/blocks.ts'
import { createLists } from '../../rows/lists.ts'
import type { Rows } from '../../rows/rows.ts'
import { blocksFull } from '../../rows/store-errors.ts'
import { createFingerprint } from '../hash/fingerprint.ts'
import type { Bucket } from './buckets.ts'
import type { Eviction } from './eviction.ts'
import {
  BLOCK_TAG,
  BLOCKS,
  EVICTIONS,
  FLOORED,
  HAS_BLOCKS,
  type Region,
  ROWS,
  SHARD_BITS,
  SLOTS,
  TAG_MASK,
} from './region.ts'
import type { SharedFloors } from './shared-floors.ts'
import {
  cellsAt,
  countBlocks,
  countLive,
  eachLive,
  freeSlot,
  halfOf,
  setLive,
  slotOf,
  slotsOf,
  tagAt,
  turned,
} from './slots.ts'

/** One slot always stays free for the next write. */
const MOST_ROWS = SLOTS - 1

/** Blocks are never evicted, so they must not take all slots of a bucket. */
const MOST_BLOCKS = 48

/**
 * SharedRows works on one key at a time: `read` copies the key's row and block into private memory,
 * a table decides on the copy, and `commit` writes the changes if no other thread has written
 * meanwhile.
 */
export interface SharedRows extends Rows {
  /** Hashes the key for the next `read`. */
  hash(key: string): void
  /** Copies that key's row and block. From then on `find` answers for this key. */
  read(): void
  /** Writes the changes; false if the caller must repeat everything from `read` on. */
  commit(nowUs: number): boolean
  /** The block of the key that was read. */
  readonly blocks: Blocks
}

/**
 * createSharedRows keeps rows in the buckets of a region. A slot is two words and the row's cells:
 *
 *     [ fingerprint: 32 bits ][ fingerprint: 20 bits | tag: 12 bits ]  [ cell 1 ][ cell 2 ] …
 *
 * The other 12 bits of the fingerprint select the bucket, together with some of the first 20. So 60
 * bits tell keys apart in the smallest table, and 64 bits from 4,096 buckets on. A blocked key has a
 * second row for the block in the same bucket, whose one cell is the block's end.
 */
export function createSharedRows(
  region: Region,
  words: Int32Array,
  cells: Float64Array,
  secret: Int32Array,
  home: Bucket,
  floors: SharedFloors,
  eviction: Eviction,
): SharedRows {
  const { homes, maxKeys, nearSlots, stride } = region
  const print = createFingerprint(secret)
  /** The key that was hashed last, if the last two calls hashed it. */
  let again = ''
  /** The row as it was read, its slot, and whether the key has a row now; likewise for its block. */
  const before = new Float64Array(stride)
  const blockRow = new Float64Array(stride)
  /** Bitmap of the slots that will hold rows after the commit. */
  const live = new Int32Array(2)
  let index = 0
  let slot = -1
  let tagBefore = 0
  let present = false
  let blockSlot = -1
  let blockBeforeUs = 0
  let blockUs = 0
  /**
   * The slot that an insert evicts in the same bucket; and whether none was found though one is
   * needed.
   */
  let victim = -1
  let victimTag = 0
  let isEvicted = false
  let isStuck = false
  let isFloored = false
  /** Whether the commit may involve more than the key's own row. */
  let isMore = true

  /** The bits of the near slots. */
  const near = (1 << nearSlots) - 1

  function hash(key: string): void {
    // For a hot key: comparing is cheaper than hashing.
    if (key === again) return
    const { low, high } = print
    print.hash(key)
    // Remember only a repeated key: storing a new string costs as much as hashing it.
    again = low === print.low && high === print.high ? key : ''
  }

  function read(): void {
    const chooses = ((print.high << 20) | (print.low >>> 12)) >>> 0
    index = Math.floor((chooses * homes) / 2 ** 32)
    home.read(index)
    rows.shard = index >> SHARD_BITS
    slot = -1
    tagBefore = 0
    if (isMore || floors.isOpen) forget()
    const { low } = print
    const high = print.high & ~TAG_MASK
    const hasBlocks = (home.live[1] & HAS_BLOCKS) !== 0
    // Hot path, all in one function. Probes slots in the key's order of preference, see freeSlot.
    search: for (let pass = 0; pass < 3; pass += 1) {
      const word = pass === 0 ? 0 : halfOf(low) ^ (pass - 1)
      const turn = pass === 0 ? 0 : low & 31
      const set = pass === 0 ? home.live[0] & near : home.live[word] & slotsOf(word)
      for (let bits = turned(set, turn); bits !== 0; bits &= bits - 1) {
        const at = slotOf(bits, word, turn)
        const first = home.slotAt(at)
        if (words[first] !== low) continue
        const second = words[first + 1]
        if ((second & ~TAG_MASK) !== high) continue
        if ((second & TAG_MASK) === BLOCK_TAG) readBlock(at, first)
        else readRow(at, first, second & TAG_MASK)
        // A blocked key may have a second row.
        if (!hasBlocks) break search
      }
    }
    rows.tag = tagBefore
    present = slot >= 0
    if (!present) isMore = true
  }

  /** Resets all state except that of the row. */
  function forget(): void {
    floors.begin()
    isMore = false
    blockSlot = -1
    blockUs = 0
    blockBeforeUs = 0
    blocks.size = 0
    victim = -1
    victimTag = 0
    isEvicted = false
    isStuck = false
    isFloored = false
  }

  function readBlock(at: number, first: number): void {
    isMore = true
    blockSlot = at
    blockUs = cells[(first >> 1) + 1]
    blockBeforeUs = blockUs
    blocks.size = 1
  }

  function readRow(at: number, first: number, tag: number): void {
    slot = at
    tagBefore = tag
    const from = (first >> 1) + 1
    for (let i = 0; i < stride; i += 1) {
      const cell = cells[from + i]
      before[i] = cell
      rows.cells[i] = cell
    }
  }

  function hasChanged(): boolean {
    if (present !== slot >= 0) return true
    if (!present) return false
    if (rows.tag !== tagBefore) return true
    for (let i = 0; i < stride; i += 1) if (rows.cells[i] !== before[i]) return true
    return false
  }

  function commit(nowUs: number): boolean {
    // The usual case: a key with a row and without a block, whose state may have changed.
    if (isMore || floors.isOpen) return commitAll(nowUs)
    return hasChanged() ? home.lock() && update() : home.isUnchanged()
  }

  function commitAll(nowUs: number): boolean {
    const rowChanged = hasChanged()
    // Drop an ended block, too.
    if (rowChanged && blockUs <= nowUs) blockUs = 0
    const blockChanged = blockUs !== blockBeforeUs
    if (!rowChanged && !blockChanged) return floors.commit() && home.isUnchanged()
    // Take the lock first: a floor must not be raised to a row that then is not evicted.
    if (isStuck || !home.change(() => floors.commit() && write(rowChanged, blockChanged))) {
      return false
    }
    const gone = Number(victim >= 0)
    const goneBlock = victimTag === BLOCK_TAG ? gone : 0
    const more = Number(present) - Number(slot >= 0) - (gone - goneBlock)
    const moreBlocks = Number(blockUs > 0) - Number(blockSlot >= 0) - goneBlock
    if (more !== 0) Atomics.add(words, ROWS, more)
    if (moreBlocks !== 0) Atomics.add(words, BLOCKS, moreBlocks)
    if (isEvicted) Atomics.add(words, EVICTIONS, 1)
    if (isFloored) Atomics.add(words, FLOORED, 1)
    // Trim only now: a refused key evicts no row, and no decision sees the floor of its own eviction.
    if (more > 0) eviction.trim(index, nowUs)
    return true
  }

  /** Writes the row into a free slot, and commits. */
  function update(): boolean {
    live[0] = home.live[0]
    live[1] = home.live[1]
    writeSlot(rows.tag, rows.cells)
    live[slot >> 5] &= ~(1 << slot)
    return home.commit(live[0], live[1])
  }

  /** Writes rows into free slots, and commits. */
  function write(rowChanged: boolean, blockChanged: boolean): boolean {
    live[0] = home.live[0]
    live[1] = home.live[1]
    // Removed rows stay valid until the commit, so new ones need other slots.
    if (rowChanged && present) writeSlot(rows.tag, rows.cells)
    if (blockChanged && blockUs > 0) {
      blockRow[0] = blockUs
      writeSlot(BLOCK_TAG, blockRow)
    }
    if (rowChanged && slot >= 0) setLive(live, slot, false)
    if (blockChanged && blockSlot >= 0) setLive(live, blockSlot, false)
    if (victim >= 0) setLive(live, victim, false)
    if (blockChanged || victimTag === BLOCK_TAG) markBlocks()
    return home.commit(live[0], live[1])
  }

  /** Flags whether the bucket has blocks. If not, a look-up stops at the key's row. */
  function markBlocks(): void {
    if (countBlocks(words, home, live) > 0) live[1] |= HAS_BLOCKS
    else live[1] &= ~HAS_BLOCKS
  }

  /** Writes a row into a free slot, next to its old one if possible, since that is in the cache. */
  function writeSlot(tag: number, row: Float64Array): void {
    const next = slot ^ 1
    const isNextFree = slot >= 0 && (live[next >> 5] & (1 << next)) === 0
    const at = isNextFree ? next : freeSlot(live, print.low, near)
    live[at >> 5] |= 1 << at
    const first = home.slotAt(at)
    words[first] = print.low
    words[first + 1] = (print.high & ~TAG_MASK) | tag
    const to = (first >> 1) + 1
    for (let i = 0; i < stride; i += 1) cells[to + i] = row[i]
  }

  /** Selects a row to evict for a new one, if the bucket or the table is full. */
  function takeOver(nowUs: number): void {
    const hasTooMany = words[ROWS] >= maxKeys
    if (!isFull() && !hasTooMany) return
    if (hasTooMany) replace(false, nowUs)
    if (victim >= 0 || !isFull()) return
    replace(true, nowUs)
    // Blocks cannot fill a bucket, so the bucket was changed while it was read.
    isStuck = victim < 0
  }

  function isFull(): boolean {
    return countLive(home.live) >= MOST_ROWS
  }

  function replace(orBlock: boolean, nowUs: number): void {
    const own = slot >= 0 ? slot : blockSlot
    victim = eviction.nearest(home, print.low & 31, orBlock, nowUs, own)
    if (victim < 0) return
    victimTag = tagAt(words, home, victim)
    isEvicted = eviction.raise(home, victim, rows.shard, nowUs)
  }

  const blocks: Blocks = {
    /** 1 if the key that was read is blocked, else 0. */
    size: 0,
    leftUs: (_key, nowUs) => (blockUs > nowUs ? blockUs - nowUs : 0),
    set(_key, untilUs, nowUs) {
      const isBlocked = blockUs > nowUs
      isMore = true
      blockUs = untilUs
      if (isBlocked) return
      let count = 0
      eachLive(home.live, (at) => {
        if (tagAt(words, home, at) === BLOCK_TAG && cells[cellsAt(home, at)] > nowUs) count += 1
      })
      if (count >= MOST_BLOCKS) throw blocksFull()
      if (blockSlot >= 0 || !isFull()) return
      replace(true, nowUs)
    },
    delete() {
      blockUs = 0
    },
    keys: () => [],
    clear() {},
  }

  // Plain fields only: an accessor would switch the object to V8's slow dictionary mode.
  const rows: SharedRows = {
    cells: new Float64Array(stride),
    lists: createLists(),
    base: 0,
    tag: 0,
    shard: 0,
    size: 0,
    maxRows: maxKeys,
    shards: 0,
    holdsLists: false,
    holdsKeys: false,
    blocks,
    hash,
    read,
    commit,
    aim: () => present,
    find: () => present,
    insert(_key, start, tag, nowUs, floored) {
      for (let i = 0; i < stride; i += 1) rows.cells[i] = start[i] ?? 0
      rows.tag = tag
      present = true
      isFloored = floored
      // An existing row needs no other to be evicted.
      if (slot < 0) takeOver(nowUs)
    },
    retag(tag) {
      rows.tag = tag
    },
    remove() {
      present = false
    },
    each() {},
    clear() {},
    move() {},
    idOf: (key) => key,
    id: () => '',
    hasId: () => false,
  }
  return rows
}
