import type { LiveAbout } from '../../src/dashboard/live-event.ts'
import type { ShownRule } from '../../src/shown-rule.ts'
import type { KeyState } from './use-key.ts'

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

/** ruleOf is a rule that holds for a key, by its limiter and name; undefined if nobody knows it. */
export function ruleOf(
  { rules }: KeyState,
  { routes }: LiveAbout,
  limiter: string,
  rule: string,
): ShownRule | undefined {
  const known = limiter === 'tiers' ? rules : (routes[limiter] ?? [])
  return known.find(({ name }) => name === rule)
}

/** leftIn is what all rules of a limiter have left, `sinceMs` after it was read. */
export function leftIn(state: KeyState, about: LiveAbout, limiter: string, sinceMs: number) {
  // JSON has null for what is infinite.
  const limited = state.limits[limiter].rules.filter(({ capacity }) => capacity !== null)
  const left = limited.map(({ rule, remaining, capacity, resetAfterMs }) => {
    const freshInMs = resetAfterMs - sinceMs
    return leftOf(ruleOf(state, about, limiter, rule), { remaining, capacity, freshInMs })
  })
  return Math.min(...left)
}
