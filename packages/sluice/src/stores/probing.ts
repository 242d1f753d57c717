/** Rows that a shard is meant for when all are taken: small enough to be copied unnoticed. */
const SHARD_ROWS = 16_384
const MOST_SHARDS = 65_536

/** shardsFor is how many shards a table is cut into, so that growing one never stalls: 2, 4, 8 … */
export function shardsFor(maxRows: number): number {
  let shards = 1
  while (shards * SHARD_ROWS < maxRows && shards < MOST_SHARDS) shards *= 2
  return shards
}

/** after is the slot that follows another; the first follows the last. */
export function after(at: number, slots: number): number {
  return at + 1 === slots ? 0 : at + 1
}

/**
 * isCutOff tells whether what is in slot `at` could not be found any more if the slot `hole`, before
 * it, became empty: whoever looks for it begins at `home` and stops at an empty slot.
 */
export function isCutOff(home: number, hole: number, at: number): boolean {
  return hole < at ? home <= hole || home > at : home <= hole && home > at
}
