import type { LiveAbout } from '../../src/dashboard/live-event.ts'
import type { ShownRule } from '../../src/shown-rule.ts'
import type { KeyState } from './use-key.ts'

/** Level is what was left at the reading, and the time from now until the key is full. */
export interface Level {
  readonly remaining: number
  readonly capacity: number
  readonly freshInMs: number
}

/**
 * leftOf returns how many whole units are left now. Buckets refill evenly, so the time until full
 * shows how far they are; a window is only known to be full at its end.
 */
export function leftOf(rule: ShownRule | undefined, level: Level): number {
  const { remaining, capacity, freshInMs } = level
  if (freshInMs <= 0) return capacity
  if (!rule?.limit || !/bucket|gcra/.test(rule.algorithm)) return remaining
  const refilled = Math.floor(capacity - (freshInMs * rule.limit) / rule.perMs)
  // Times are rounded, so the reading is a lower bound.
  return Math.max(remaining, Math.min(refilled, capacity))
}

/** ruleOf finds the rule of a key by limiter and name; undefined if it is unknown. */
export function ruleOf(
  { rules }: KeyState,
  { routes }: LiveAbout,
  limiter: string,
  rule: string,
): ShownRule | undefined {
  const known = limiter === 'tiers' ? rules : (routes[limiter] ?? [])
  return known.find(({ name }) => name === rule)
}

/** leftIn returns what the rules of a limiter have left, `sinceMs` after the reading. */
export function leftIn(state: KeyState, about: LiveAbout, limiter: string, sinceMs: number) {
  // JSON has null for infinite values.
  const limited = state.limits[limiter].rules.filter(({ capacity }) => capacity !== null)
  const left = limited.map(({ rule, remaining, capacity, resetAfterMs }) => {
    const freshInMs = resetAfterMs - sinceMs
    return leftOf(ruleOf(state, about, limiter, rule), { remaining, capacity, freshInMs })
  })
  return Math.min(...left)
}
