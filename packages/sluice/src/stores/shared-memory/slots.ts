import type { Bucket } from './buckets.ts'
import { BLOCK_TAG, HIGH_SLOTS, TAG_MASK } from './region.ts'

/** turned rotates the bits of a word, so that the bit of slot `turn` becomes the lowest. */
export function turned(bits: number, turn: number): number {
  return (bits >>> turn) | (bits << (32 - turn))
}

/** slotOf returns the slot of the lowest set bit of a rotated word. */
export function slotOf(bits: number, word: number, turn: number): number {
  return 32 * word + ((turn + lowestOf(bits)) & 31)
}

/**
 * freeSlot returns the free slot that a key prefers. There must be one. Keys prefer the near slots,
 * then the slots of one bitmap word from some slot on, then those of the other word. Six bits of
 * the fingerprint select the word and the slot.
 */
export function freeSlot(live: Int32Array, low: number, near: number): number {
  const besideHead = ~live[0] & near
  if (besideHead !== 0) return lowestOf(besideHead)
  const half = halfOf(low)
  const word = ~live[half] & slotsOf(half) ? half : 1 - half
  return slotOf(turned(~live[word] & slotsOf(word), low & 31), word, low & 31)
}

/** halfOf returns the bitmap word that a key prefers. */
export const halfOf = (low: number) => (low >>> 5) & 1

/** slotsOf returns the bits of a bitmap word that belong to slots. */
export const slotsOf = (word: number) => (word === 0 ? -1 : HIGH_SLOTS)

/** countLive counts the slots that hold a row. */
export function countLive(live: Int32Array): number {
  let count = 0
  eachLive(live, () => {
    count += 1
  })
  return count
}

/** eachLive calls `visit` for each slot that holds a row. */
export function eachLive(live: Int32Array, visit: (slot: number) => void): void {
  for (let bits = live[0]; bits !== 0; bits &= bits - 1) visit(lowestOf(bits))
  for (let bits = live[1] & HIGH_SLOTS; bits !== 0; bits &= bits - 1) visit(32 + lowestOf(bits))
}

/** tagAt returns the tag of a bucket's slot. */
export function tagAt(words: Int32Array, bucket: Bucket, slot: number): number {
  return words[bucket.slotAt(slot) + 1] & TAG_MASK
}

/** cellsAt returns the offset of the cells of a bucket's slot, in float64s. */
export function cellsAt(bucket: Bucket, slot: number): number {
  return (bucket.slotAt(slot) >> 1) + 1
}

/** countBlocks counts the given slots of a bucket that hold a block. */
export function countBlocks(words: Int32Array, bucket: Bucket, live: Int32Array): number {
  let count = 0
  eachLive(live, (slot) => {
    if (tagAt(words, bucket, slot) === BLOCK_TAG) count += 1
  })
  return count
}

/** isLive tells whether a slot holds a row. */
export function isLive(live: Int32Array, slot: number): boolean {
  return (live[slot >> 5] & (1 << slot)) !== 0
}

/** setLive marks a slot as occupied or free. */
export function setLive(live: Int32Array, slot: number, holds: boolean): void {
  if (holds) live[slot >> 5] |= 1 << slot
  else live[slot >> 5] &= ~(1 << slot)
}

function lowestOf(bits: number): number {
  return 31 - Math.clz32(bits & -bits)
}
