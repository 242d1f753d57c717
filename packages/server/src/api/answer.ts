import type { Decision } from 'sluice'
import { isEnforced } from '../decided.ts'

/** Answer is a decision as `POST /v1/check` tells it; JSON makes null of what is infinite. */
export interface Answer extends Decision {
  /** Set for a route in shadow mode: `allowed` is false for a blocked key only. */
  readonly shadow?: true
  /** What would have been decided without shadow mode; goes with `shadow`. */
  readonly wouldAllow?: boolean
  /** Set where no waiting helps, because the cost is above a capacity: `retryAfterMs` is infinite. */
  readonly never?: true
}

/**
 * answerOf tells what a decision comes to on a route. In shadow mode the figures are those of the
 * rules, but for `delayMs`: such a route delays no request.
 */
export function answerOf(decision: Answer, isShadow: boolean): Answer {
  if (!isShadow) return decision
  const wouldAllow = decision.allowed
  const allowed = wouldAllow || !isEnforced(decision.source, isShadow)
  return { ...decision, allowed, shadow: true, wouldAllow, delayMs: 0 }
}

/** neverOf is the refusal of a cost above a capacity. `seen` is how the key stands, at cost 0. */
export function neverOf(seen: Decision, cost: number): Answer {
  const retryAfterMs = Number.POSITIVE_INFINITY
  const rules = seen.rules.map((each) => (each.capacity < cost ? { ...each, retryAfterMs } : each))
  const rule = rules.find(({ capacity }) => capacity < cost)?.rule ?? seen.rule
  return { ...seen, allowed: false, never: true, retryAfterMs, delayMs: 0, rule, rules }
}
