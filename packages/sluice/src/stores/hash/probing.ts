/** Rows per shard of a full table. A shard this small is copied without a noticeable pause. */
const SHARD_ROWS = 16_384
const MOST_SHARDS = 65_536

/**
 * shardsFor returns the number of shards of a table, a power of two: growing one shard never
 * stalls.
 */
export function shardsFor(maxRows: number): number {
  let shards = 1
  while (shards * SHARD_ROWS < maxRows && shards < MOST_SHARDS) shards *= 2
  return shards
}

/** isCrowded tells whether one more row would exceed a shard's load factor of 3/4. */
export function isCrowded(taken: number, slots: number): boolean {
  return 4 * (taken + 1) > 3 * slots
}

/** slotsFor returns how many slots a shard grows to: a load factor of 1/2. */
export function slotsFor(rows: number): number {
  return Math.max(8, 2 * rows)
}

/**
 * isCutOff tells whether emptying slot `hole` would make the entry in slot `at` unreachable: a probe
 * for it starts at `home` and stops at the first empty slot.
 */
export function isCutOff(home: number, hole: number, at: number): boolean {
  return hole < at ? home <= hole || home > at : home <= hole && home > at
}
