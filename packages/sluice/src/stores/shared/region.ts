import { type Column, strideOf } from '../layout.ts'

/** Slots of a bucket: as many as the bits of two words. */
export const SLOTS = 64

/**
 * Words at the head of a bucket: its state, twice the bits of the slots that hold a row, and the
 * counts of evictions and floored starts.
 */
export const HEAD_WORDS = 8
export const EVICTIONS = 5
export const FLOORED = 6

/** Homes that share a floor. */
export const SHARD_BUCKETS = 64

/** Rows a bucket has on average when the table is full. That one has 64 is then next to impossible. */
const MEAN_ROWS = 28

/** Fewer, and the bits that tell keys of one bucket apart would not be enough. */
const LEAST_BUCKETS = 256

/** Words that count what a table holds: rows, and block rows. */
export const ROWS = 0
export const BLOCKS = 1
const COUNTER_WORDS = 16

/** A tag has 12 bits; the last one marks a block. */
export const BLOCK_TAG = 4_095
const MOST_TAGS = BLOCK_TAG - 1
const LEAST_TAGS = 256

/** Words before, and float64s per column, of a tag's entry. */
export const TAG_HEAD_WORDS = 2
export const TAG_CELLS = 4

/**
 * Region is where the parts of one table are, counted in 32-bit words from its beginning. All of
 * it is 0 at first, and that means: empty, and every bucket in its first place.
 *
 *     counters | where each bucket is | which places are free | tags | places of buckets
 */
export interface Region {
  readonly columns: readonly Column[]
  readonly maxKeys: number
  /** Cells of a row, and words of a slot and of a bucket. */
  readonly stride: number
  readonly slotWords: number
  readonly bucketWords: number
  /** Buckets for rows; after them come those for floors, one per shard. */
  readonly homes: number
  readonly buckets: number
  /** Places for buckets, more than there are buckets. */
  readonly places: number
  readonly whereAt: number
  readonly freeAt: number
  readonly tags: number
  readonly tagsAt: number
  readonly tagWords: number
  readonly placesAt: number
  readonly bytes: number
}

/** regionOf lays out a table for so many keys, with rows of these columns. */
export function regionOf(maxKeys: number, columns: readonly Column[]): Region {
  // A block row needs a cell even where no rule does.
  const stride = Math.max(1, strideOf(columns))
  const slotWords = 2 * (1 + stride)
  const bucketWords = HEAD_WORDS + SLOTS * slotWords
  const homes = Math.max(LEAST_BUCKETS, Math.ceil(maxKeys / MEAN_ROWS))
  const buckets = homes + Math.ceil(homes / SHARD_BUCKETS)
  const places = buckets + 1_024 + Math.ceil(buckets / 64)
  const tags = Math.min(MOST_TAGS, Math.max(LEAST_TAGS, Math.ceil(maxKeys / 64)))
  const tagWords = TAG_HEAD_WORDS + 2 * TAG_CELLS * columns.length
  const whereAt = COUNTER_WORDS
  const freeAt = whereAt + buckets
  const tagsAt = even(freeAt + places)
  const placesAt = tagsAt + (tags + 1) * tagWords
  const bytes = Math.ceil((4 * (placesAt + places * bucketWords)) / 64) * 64
  return {
    columns,
    maxKeys,
    stride,
    slotWords,
    bucketWords,
    homes,
    buckets,
    places,
    whereAt,
    freeAt,
    tags,
    tagsAt,
    tagWords,
    placesAt,
    bytes,
  }
}

const even = (words: number) => words + (words % 2)
