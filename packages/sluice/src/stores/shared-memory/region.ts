import { type Column, strideOf } from '../../rows/layout.ts'

/** Slots of a bucket. */
export const SLOTS = 58

/** A bucket's slots are bits of two words: those in the second, and a flag for block rows. */
export const HIGH_SLOTS = (1 << (SLOTS - 32)) - 1
export const HAS_BLOCKS = 1 << 31

/**
 * Words at the head of a place for a bucket: the bucket's state, twice the bits of the slots that
 * hold a row, where the bucket is whose home this is, a spare one, and which bucket this is, its
 * number + 1; 0 for the one at home.
 */
export const HEAD_WORDS = 8
export const WHERE = 5
export const OWNER = 7

/** Words of a cache line. */
const LINE_WORDS = 16

/** 2 to this many homes share a floor. */
export const SHARD_BITS = 6

/**
 * Tags that share a bucket of the overflow, which has a row for each. One slot is always free for
 * the next row to be written into.
 */
export const OVERFLOW_TAGS = SLOTS - 1

/** Rows a bucket has on average when the table is full. That one has 58 is then next to impossible. */
const MEAN_ROWS = 27

/** Fewer, and the bits that tell keys of one bucket apart would not be enough. */
const LEAST_BUCKETS = 256

/** Places that threads may leave behind when they are terminated with a lock. */
const LEAST_SPARES = 224
const MOST_SPARES = 1_024

/** Words that count: rows and block rows held now; evictions and floored starts ever. */
export const ROWS = 0
export const BLOCKS = 1
export const EVICTIONS = 2
export const FLOORED = 3
const COUNTER_WORDS = 16

/**
 * A slot's second word ends with a tag of 12 bits; the others belong to the fingerprint. The last tag
 * marks a block.
 */
export const TAG_MASK = 2 ** 12 - 1
export const BLOCK_TAG = 4_095
const MOST_TAGS = BLOCK_TAG - 1
const LEAST_TAGS = 1_024

/** Words before, and float64s per column, of a tag's entry: a rule's text has up to 64 characters. */
export const TAG_HEAD_WORDS = 2
export const TAG_CELLS = 8

/**
 * Region is where the parts of one table are, counted in 32-bit words from its beginning. All of
 * it is 0 at first, and that means: empty, and every bucket in its first place.
 *
 *     counters | which places are free | tags | heads | slots
 *
 * A place for a bucket is a head, with the slots beside it that fill its cache line, and the other
 * slots. Heads lie together: in a table with few rows they are all that is touched, and in a full
 * one they stay in the cache.
 */
export interface Region {
  readonly columns: readonly Column[]
  readonly maxKeys: number
  /** Cells of a row, and words of a slot. */
  readonly stride: number
  readonly slotWords: number
  /** How many slots are beside a head; words of a head with these, and of the other slots. */
  readonly nearSlots: number
  readonly headWords: number
  readonly farWords: number
  /**
   * Buckets for rows; after them come those for floors, one per shard; then those for what floors
   * have no room for, from this number on.
   */
  readonly homes: number
  readonly overflowAt: number
  readonly buckets: number
  /** Places for buckets, more than there are buckets. */
  readonly places: number
  readonly freeAt: number
  readonly tags: number
  readonly tagsAt: number
  readonly tagWords: number
  readonly headsAt: number
  readonly slotsAt: number
  readonly bytes: number
}

/** regionOf lays out a table for so many keys, with rows of these columns. */
export function regionOf(maxKeys: number, columns: readonly Column[]): Region {
  // A block row needs a cell even where no rule does.
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

/** movedFrom is how many buckets are not at home; tests look at it. */
export function movedFrom({ buckets, headsAt, headWords }: Region, words: Int32Array): number {
  let count = 0
  for (let i = 0; i < buckets; i += 1) {
    if (words[headsAt + i * headWords + WHERE] !== 0) count += 1
  }
  return count
}
