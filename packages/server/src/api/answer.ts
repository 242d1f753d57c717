import type { Decision } from 'sluice'
import { isEnforced } from '../decided.ts'

/** Answer is a decision as `POST /v1/check` returns it; JSON turns infinite values into null. */
export interface Answer extends Decision {
  /** Set for a route in shadow mode: `allowed` is false for a blocked key only. */
  readonly shadow?: true
  /** The decision without shadow mode; set together with `shadow`. */
  readonly wouldAllow?: boolean
  /** Set if the cost is above a capacity, so that no waiting helps: `retryAfterMs` is infinite. */
  readonly never?: true
}

/**
 * answerOf applies shadow mode to a decision. Its numbers stay those of the rules, except
 * `delayMs`: a route in shadow mode delays no request.
 */
export function answerOf(decision: Answer, isShadow: boolean): Answer {
  if (!isShadow) return decision
  const wouldAllow = decision.allowed
  const allowed = wouldAllow || !isEnforced(decision.source, isShadow)
  return { ...decision, allowed, shadow: true, wouldAllow, delayMs: 0 }
}

/** neverOf is the refusal of a cost above a capacity. `seen` is a peek at the key with cost 0. */
export function neverOf(seen: Decision, cost: number): Answer {
  const retryAfterMs = Number.POSITIVE_INFINITY
  const rules = seen.rules.map((each) => (each.capacity < cost ? { ...each, retryAfterMs } : each))
  const rule = rules.find(({ capacity }) => capacity < cost)?.rule ?? seen.rule
  return { ...seen, allowed: false, never: true, retryAfterMs, delayMs: 0, rule, rules }
}
