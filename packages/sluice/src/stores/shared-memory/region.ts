import { type Column, strideOf } from '../../rows/layout.ts'

/** SLOTS is the number of slots of a bucket. */
export const SLOTS = 58

/** The slot bits of the second bitmap word; and a flag that the bucket has block rows. */
export const HIGH_SLOTS = (1 << (SLOTS - 32)) - 1
export const HAS_BLOCKS = 1 << 31

/**
 * Words of a place's head: the state of the bucket in it; two bitmaps of two words each; the
 * present place of the bucket whose home this is (`WHERE`); a spare word; and the bucket's number +
 * 1, or 0 if it is at home (`OWNER`).
 */
export const HEAD_WORDS = 8
export const WHERE = 5
export const OWNER = 7

/** 32-bit words per cache line. */
const LINE_WORDS = 16

/** 2^SHARD_BITS buckets of rows share a floor. */
export const SHARD_BITS = 6

/**
 * Tags per bucket of the overflow, which has a row for each. One slot always stays free for the next
 * write.
 */
export const OVERFLOW_TAGS = SLOTS - 1

/** Rows per bucket of a full table, on average. A bucket with 58 rows is then next to impossible. */
const MEAN_ROWS = 27

/** With fewer buckets, the fingerprint bits would not be enough to tell keys of a bucket apart. */
const LEAST_BUCKETS = 256

/** Spare places, of which each thread that is terminated with a lock uses one up. */
const LEAST_SPARES = 224
const MOST_SPARES = 1_024

/** Counter words: rows and block rows now; evictions and starts from the floor so far. */
export const ROWS = 0
export const BLOCKS = 1
export const EVICTIONS = 2
export const FLOORED = 3
const COUNTER_WORDS = 16

/**
 * The low 12 bits of a slot's second word are the tag; the others belong to the fingerprint. The
 * last tag marks a block.
 */
export const TAG_MASK = 2 ** 12 - 1
export const BLOCK_TAG = 4_095
const MOST_TAGS = BLOCK_TAG - 1
const LEAST_TAGS = 1_024

/**
 * Layout of a tag's entry: head words, then float64s per column, for a rule text of 64 characters.
 */
export const TAG_HEAD_WORDS = 2
export const TAG_CELLS = 8

/**
 * Region is the memory layout of one table, in 32-bit words from its start. It is zeroed at first,
 * which means that it is empty and that every bucket is at home.
 *
 *     counters | states of places | tags | heads | slots
 *
 * A place for a bucket consists of a head, the near slots that fill up the head's cache line, and
 * the far slots. Heads are contiguous: a table with few rows touches nothing else, and those of a
 * full table stay in the cache.
 */
export interface Region {
  readonly columns: readonly Column[]
  readonly maxKeys: number
  /** Cells per row; and words per slot. */
  readonly stride: number
  readonly slotWords: number
  /** Number of near slots; words of a head with its near slots; and words of the far slots. */
  readonly nearSlots: number
  readonly headWords: number
  readonly farWords: number
  /**
   * Buckets 0 to `homes` − 1 hold rows. Then come the buckets of floors, one per shard, and from the
   * second number on those of the overflow.
   */
  readonly homes: number
  readonly overflowAt: number
  readonly buckets: number
  /** Number of places, which is more than the number of buckets. */
  readonly places: number
  readonly freeAt: number
  readonly tags: number
  readonly tagsAt: number
  readonly tagWords: number
  readonly headsAt: number
  readonly slotsAt: number
  readonly bytes: number
}

/** regionOf lays out a table for `maxKeys` keys, with rows of these columns. */
export function regionOf(maxKeys: number, columns: readonly Column[]): Region {
  // A block row needs a cell even if no rule does.
  const stride = Math.max(1, strideOf(columns))
  const slotWords = 2 * (1 + stride)
  const nearSlots = Math.floor((LINE_WORDS - HEAD_WORDS) / slotWords)
  const headWords = HEAD_WORDS + nearSlots * slotWords
  const farWords = (SLOTS - nearSlots) * slotWords
  const homes = Math.max(LEAST_BUCKETS, Math.ceil(maxKeys / MEAN_ROWS))
  const tags = Math.min(MOST_TAGS, Math.max(LEAST_TAGS, Math.ceil(maxKeys / 72)))
  const overflowAt = homes + Math.ceil(homes / 2 ** SHARD_BITS)
  const buckets = overflowAt + Math.ceil((tags + 1) / OVERFLOW_TAGS)
  const places = buckets + Math.min(MOST_SPARES, Math.max(LEAST_SPARES, buckets >> 5))
  const tagWords = TAG_HEAD_WORDS + 2 * TAG_CELLS * columns.length
  const freeAt = COUNTER_WORDS
  const tagsAt = lines(freeAt + places)
  const headsAt = lines(tagsAt + (tags + 1) * tagWords)
  const slotsAt = lines(headsAt + places * headWords)
  const bytes = 4 * lines(slotsAt + places * farWords)
  return {
    columns,
    maxKeys,
    stride,
    slotWords,
    nearSlots,
    headWords,
    farWords,
    homes,
    overflowAt,
    buckets,
    places,
    freeAt,
    tags,
    tagsAt,
    tagWords,
    headsAt,
    slotsAt,
    bytes,
  }
}

/** Rounds up to whole cache lines. */
const lines = (words: number) => Math.ceil(words / LINE_WORDS) * LINE_WORDS

/** movedFrom counts the buckets that are not at home. For tests. */
export function movedFrom({ buckets, headsAt, headWords }: Region, words: Int32Array): number {
  let count = 0
  for (let i = 0; i < buckets; i += 1) {
    if (words[headsAt + i * headWords + WHERE] !== 0) count += 1
  }
  return count
}
