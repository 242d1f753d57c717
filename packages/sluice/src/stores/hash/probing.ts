/** Rows that a shard is meant for when all are taken: small enough to be copied unnoticed. */
const SHARD_ROWS = 16_384
const MOST_SHARDS = 65_536

/** shardsFor is how many shards a table is cut into, so that growing one never stalls: 2, 4, 8 … */
export function shardsFor(maxRows: number): number {
  let shards = 1
  while (shards * SHARD_ROWS < maxRows && shards < MOST_SHARDS) shards *= 2
  return shards
}

/** isCrowded tells whether a shard has to grow for one more: at most three quarters are taken. */
export function isCrowded(taken: number, slots: number): boolean {
  return 4 * (taken + 1) > 3 * slots
}

/** slotsFor is how many slots a shard grows to: twice as many as there will be rows. */
export function slotsFor(rows: number): number {
  return Math.max(8, 2 * rows)
}

/**
 * isCutOff tells whether what is in slot `at` could not be found any more if the slot `hole`, before
 * it, became empty: whoever looks for it begins at `home` and stops at an empty slot.
 */
export function isCutOff(home: number, hole: number, at: number): boolean {
  return hole < at ? home <= hole || home > at : home <= hole && home > at
}
