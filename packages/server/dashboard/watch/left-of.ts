import type { ShownRule } from '../../src/shown-rule.ts'

/** Level is what was left when it was read, and when it is fresh, as of now. */
export interface Level {
  readonly remaining: number
  readonly capacity: number
  readonly freshInMs: number
}

/**
 * leftOf is how many whole units are left now. Buckets refill evenly, and their time to fresh tells
 * how far they are; of windows it is known only that they have all when they are fresh.
 */
export function leftOf(rule: ShownRule | undefined, level: Level): number {
  const { remaining, capacity, freshInMs } = level
  if (freshInMs <= 0) return capacity
  if (!rule?.limit || !/bucket|gcra/.test(rule.algorithm)) return remaining
  const refilled = Math.floor(capacity - (freshInMs * rule.limit) / rule.perMs)
  // Times are rounded: what was read is never too high.
  return Math.max(remaining, Math.min(refilled, capacity))
}
