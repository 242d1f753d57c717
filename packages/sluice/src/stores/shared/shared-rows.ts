import type { Blocks } from '../blocks.ts'
import { createFingerprint } from '../fingerprint.ts'
import type { RowCare, Rows } from '../rows.ts'
import { blocksFull } from '../store-errors.ts'
import { type Bucket, countLive, eachLive, lowestOf } from './buckets.ts'
import {
  BLOCK_TAG,
  BLOCKS,
  EVICTIONS,
  FLOORED,
  HAS_BLOCKS,
  HIGH_SLOTS,
  type Region,
  ROWS,
  SHARD_BITS,
  SLOTS,
} from './region.ts'
import type { SharedFloors } from './shared-floors.ts'

/** One slot is always free for the next row to be written into. */
const MOST_ROWS = SLOTS - 1

/** Blocks are never evicted, so they may not take all slots of a bucket. */
const MOST_BLOCKS = 48

/** Rows looked at for the one nearest to fresh. */
const LOOKED_AT = 8

/** The upper 20 bits of a slot's second word belong to the fingerprint, the others are the tag. */
const TAG_MASK = 4_095

/**
 * The order in which a key likes slots, and is looked for in them: those beside the bucket's head;
 * those with a bit in one word, from some slot on; those in the other word.
 */
const PASSES = 3
const wordOf = (pass: number, low: number) => (pass === 0 ? 0 : ((low >>> 5) ^ pass) & 1)
const turnOf = (pass: number, low: number) => (pass === 0 ? 0 : low & 31)

/**
 * SharedRows holds one key at a time: `read` copies its row and block into private memory, a table
 * decides on the copy, and `commit` writes what has changed, if nobody else has written meanwhile.
 */
export interface SharedRows extends Rows {
  /** Reads the key's row; `find` then answers for this key. */
  read(key: string): void
  /** Writes what has changed; false when everything has to be done again from `read` on. */
  commit(nowUs: number): boolean
  /** The block of the key that was read. */
  readonly blocks: Blocks
  /** Given by the table, before anything else. */
  care: RowCare
}

/**
 * createSharedRows keeps rows in the buckets of a region. A slot is two words and the row's cells:
 *
 *     [ fingerprint: 32 bits ][ fingerprint: 20 bits | tag: 12 bits ]  [ cell 1 ][ cell 2 ] …
 *
 * The other 12 bits of the fingerprint choose the bucket, with some of the first 20; so keys are
 * told apart by 60 bits in the smallest table and by 64 from 4,096 buckets on. A key that is
 * blocked has a row of its own for that, in the same bucket, whose one cell is the block's end.
 */
export function createSharedRows(
  region: Region,
  words: Int32Array,
  cells: Float64Array,
  secret: Int32Array,
  buckets: { readonly home: Bucket; readonly other: Bucket },
  floors: SharedFloors,
): SharedRows {
  const { homes, maxKeys, nearSlots, stride } = region
  const { home, other } = buckets
  const print = createFingerprint(secret)
  /** The row as it was read, its slot, and whether the key has one by now; likewise its block. */
  const before = new Float64Array(stride)
  const blockRow = new Float64Array(stride)
  /** The slots that will hold rows. */
  const live = new Int32Array(2)
  let slot = -1
  let tagBefore = 0
  let present = false
  let blockSlot = -1
  let blockBeforeUs = 0
  let blockUs = 0
  /** What an insert has to give way: a slot of the same bucket, or any row of another bucket. */
  let victim = -1
  let victimTag = 0
  let isEvicted = false
  let needsRoom = false
  let isFloored = false
  /** Whether anything but a change of the key's own row may be involved. */
  let isMore = true

  const near = (1 << nearSlots) - 1
  const maskOf = (pass: number, word: number) => {
    if (word === 1) return HIGH_SLOTS
    return pass === 0 ? near : ~near
  }
  const tagAt = (bucket: Bucket, at: number) => words[bucket.slotAt(at) + 1] & TAG_MASK
  const cellsAt = (bucket: Bucket, at: number) => (bucket.slotAt(at) >> 1) + 1

  function homeOf(): number {
    const chooses = ((print.high << 20) | (print.low >>> 12)) >>> 0
    return Math.floor((chooses * homes) / 2 ** 32)
  }

  function read(key: string): void {
    print.read(key)
    const index = homeOf()
    home.read(index)
    rows.shard = index >> SHARD_BITS
    slot = -1
    tagBefore = 0
    if (isMore || floors.isOpen) forget()
    const { low } = print
    const high = print.high & ~TAG_MASK
    const hasBlocks = (home.live[1] & HAS_BLOCKS) !== 0
    search: for (let pass = 0; pass < PASSES; pass += 1) {
      const word = wordOf(pass, low)
      const turn = turnOf(pass, low)
      const set = home.live[word] & maskOf(pass, word)
      for (let bits = (set >>> turn) | (set << (32 - turn)); bits !== 0; bits &= bits - 1) {
        const at = 32 * word + ((turn + lowestOf(bits)) & 31)
        const first = home.slotAt(at)
        if (words[first] !== low) continue
        const second = words[first + 1]
        if ((second & ~TAG_MASK) !== high) continue
        if ((second & TAG_MASK) === BLOCK_TAG) readBlock(at, first)
        else readRow(at, first, second & TAG_MASK)
        if (!hasBlocks) break search
      }
    }
    rows.tag = tagBefore
    present = slot >= 0
    if (!present) isMore = true
  }

  /** Forgets what there was besides a row. */
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
    needsRoom = false
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
    // By far the most frequent: another state, or the same, for a key that has one and no block.
    if (isMore || floors.isOpen) return commitAll(nowUs)
    return hasChanged() ? home.lock() && update() : home.isUnchanged()
  }

  function commitAll(nowUs: number): boolean {
    const rowChanged = hasChanged()
    // A block that has ended goes along.
    if (rowChanged && blockUs <= nowUs) blockUs = 0
    const blockChanged = blockUs !== blockBeforeUs
    if (!rowChanged && !blockChanged) return floors.commit() && home.isUnchanged()
    if (needsRoom) {
      makeRoom(nowUs)
      return false
    }
    // Before a floor is raised to a row, it must be sure that there is such a row.
    if (victim >= 0 && !home.isUnchanged()) return false
    if (!floors.commit()) return false
    if (!home.lock() || !write(rowChanged, blockChanged)) return false
    const gone = Number(victim >= 0)
    const goneBlock = victimTag === BLOCK_TAG ? gone : 0
    const more = Number(present) - Number(slot >= 0) - (gone - goneBlock)
    const moreBlocks = Number(blockUs > 0) - Number(blockSlot >= 0) - goneBlock
    if (more !== 0) Atomics.add(words, ROWS, more)
    if (moreBlocks !== 0) Atomics.add(words, BLOCKS, moreBlocks)
    return true
  }

  /** Writes the row into another slot, and makes that count. */
  function update(): boolean {
    live[0] = home.live[0]
    live[1] = home.live[1]
    writeSlot(rows.tag, rows.cells)
    drop(slot)
    return home.commit(live[0], live[1])
  }

  /** Writes rows into slots that hold none, and makes them count. */
  function write(rowChanged: boolean, blockChanged: boolean): boolean {
    live[0] = home.live[0]
    live[1] = home.live[1]
    // Until the commit, rows that go still count, so new ones are written beside them.
    const added = rowChanged && present ? writeSlot(rows.tag, rows.cells) : -1
    if (blockChanged && blockUs > 0) {
      blockRow[0] = blockUs
      writeSlot(BLOCK_TAG, blockRow)
    }
    if (rowChanged && slot >= 0) drop(slot)
    if (blockChanged && blockSlot >= 0) drop(blockSlot)
    if (victim >= 0) drop(victim)
    if (blockChanged || victimTag === BLOCK_TAG) markBlocks()
    if (isEvicted) words[home.head + EVICTIONS] += 1
    if (isFloored && added >= 0) words[home.head + FLOORED] += 1
    return home.commit(live[0], live[1])
  }

  /** Notes whether a block is left among the rows, so that most keys need not be looked for twice. */
  function markBlocks(): void {
    live[1] &= ~HAS_BLOCKS
    let isThere = false
    eachLive(live, (at) => {
      if (tagAt(home, at) === BLOCK_TAG) isThere = true
    })
    if (isThere) live[1] |= HAS_BLOCKS
  }

  function drop(at: number): void {
    live[at >> 5] &= ~(1 << at)
  }

  /** The free slot that the key likes best. */
  function freeSlot(): number {
    for (let pass = 0; pass < PASSES; pass += 1) {
      const word = wordOf(pass, print.low)
      const turn = turnOf(pass, print.low)
      const free = ~live[word] & maskOf(pass, word)
      if (free === 0) continue
      return 32 * word + ((turn + lowestOf((free >>> turn) | (free << (32 - turn)))) & 31)
    }
    return -1
  }

  /** Writes a row into a free slot: next to its old one if it can be, since that is at hand. */
  function writeSlot(tag: number, row: Float64Array): number {
    const next = slot ^ 1
    const at = slot >= 0 && (live[next >> 5] & (1 << next)) === 0 ? next : freeSlot()
    live[at >> 5] |= 1 << at
    const first = home.slotAt(at)
    words[first] = print.low
    words[first + 1] = (print.high & ~TAG_MASK) | tag
    const to = (first >> 1) + 1
    for (let i = 0; i < stride; i += 1) cells[to + i] = row[i]
    return at
  }

  /** Finds a slot to give way to a new row, if the bucket or the table is full. */
  function takeOver(nowUs: number): void {
    if (!isFull() && words[ROWS] < maxKeys) return
    replace(nearest(home, isFull(), nowUs), nowUs)
    if (victim < 0) needsRoom = true
  }

  function isFull(): boolean {
    return countLive(home.live) >= MOST_ROWS
  }

  function replace(at: number, nowUs: number): void {
    victim = at
    if (at < 0) return
    victimTag = tagAt(home, at)
    isEvicted = evict(home, at, rows.shard, nowUs)
  }

  /** The row nearest to fresh among some of a bucket; −1 if there is none. A block that has ended is fresh. */
  function nearest(bucket: Bucket, orBlock: boolean, nowUs: number): number {
    let found = -1
    let foundUs = Number.POSITIVE_INFINITY
    let looked = 0
    for (let i = 0; i < SLOTS && looked < LOOKED_AT; i += 1) {
      const at = ((print.low & 63) + i) % SLOTS
      if ((bucket.live[at >> 5] & (1 << at)) === 0) continue
      if (bucket === home && (at === slot || at === blockSlot)) continue
      const tag = tagAt(bucket, at)
      const from = cellsAt(bucket, at)
      if (tag === BLOCK_TAG && (!orBlock || cells[from] > nowUs)) continue
      const freshUs = tag === BLOCK_TAG ? 0 : rows.care.freshAtUs(cells, from, tag)
      looked += 1
      if (freshUs >= foundUs) continue
      found = at
      foundUs = freshUs
    }
    return found
  }

  /** Raises the floor to a row that has to go, if it is in use. */
  function evict(bucket: Bucket, at: number, shard: number, nowUs: number): boolean {
    const [from, tag] = [cellsAt(bucket, at), tagAt(bucket, at)]
    if (tag === BLOCK_TAG || rows.care.freshAtUs(cells, from, tag) <= nowUs) return false
    rows.care.evicted(cells, from, tag, shard, nowUs)
    return true
  }

  /** The table is full, but the bucket has no row that could go: takes one from another bucket. */
  function makeRoom(nowUs: number): void {
    const start = homeOf()
    for (let i = 1; i < homes; i += 1) {
      const index = (start + i) % homes
      other.read(index)
      const at = nearest(other, false, nowUs)
      if (at < 0) continue
      floors.begin()
      const inUse = evict(other, at, index >> SHARD_BITS, nowUs)
      if (!other.isUnchanged() || !floors.commit() || !other.lock()) return
      if (inUse) words[other.head + EVICTIONS] += 1
      live.set(other.live)
      drop(at)
      if (other.commit(live[0], live[1])) Atomics.sub(words, ROWS, 1)
      return
    }
    // Nobody to go: the count was left wrong by a thread that ended before it could correct it.
    Atomics.store(words, ROWS, 0)
  }

  const blocks: Blocks = {
    /** Whether the key that was read is blocked. */
    size: 0,
    leftUs: (_key, nowUs) => (blockUs > nowUs ? blockUs - nowUs : 0),
    set(_key, untilUs, nowUs) {
      isMore = true
      blockUs = untilUs
      if (blockSlot >= 0) return
      let count = 0
      eachLive(home.live, (at) => {
        if (tagAt(home, at) === BLOCK_TAG && cells[cellsAt(home, at)] > nowUs) count += 1
      })
      if (count >= MOST_BLOCKS) throw blocksFull()
      if (!isFull()) return
      replace(nearest(home, true, nowUs), nowUs)
    },
    delete() {
      blockUs = 0
    },
    keys: () => [],
    clear() {},
  }

  // Plain fields only: an accessor would turn the object into a slow one.
  const rows: SharedRows = {
    cells: new Float64Array(stride),
    base: 0,
    tag: 0,
    shard: 0,
    size: 0,
    maxRows: maxKeys,
    shards: 0,
    holdsLists: false,
    holdsKeys: false,
    blocks,
    care: { freshAtUs: () => 0, evicted() {}, dropped() {} },
    read,
    commit,
    find: () => present,
    insert(_key, start, tag, nowUs, floored) {
      for (let i = 0; i < stride; i += 1) rows.cells[i] = start[i] ?? 0
      rows.tag = tag
      present = true
      isFloored = floored
      // A row that was there goes on in its slot.
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
