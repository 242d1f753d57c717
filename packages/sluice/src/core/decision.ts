import { sharedMap } from './shared-map.ts'

/** Source is where a decision came from. In-process stores answer `'store'` or `'blocked'`. */
export type Source = 'store' | 'cache' | 'lease' | 'local' | 'open' | 'closed' | 'blocked'

/** RuleDecision is one rule's own part in a decision. */
export interface RuleDecision {
  /** The rule's name. */
  readonly rule: string
  /** The most units that can ever remain. */
  readonly capacity: number
  /** Whole units that would pass now. */
  readonly remaining: number
  /** How long until this rule would admit the cost; 0 if it does not refuse. */
  readonly retryAfterMs: number
  /** How long until the key has its whole capacity again by this rule. */
  readonly resetAfterMs: number
  /** How long until `remaining` grows by one if nothing else happens; 0 when the rule is full. */
  readonly nextAfterMs: number
  /** How long an allowed request must be held for its slot; above 0 only with a leaky bucket. */
  readonly delayMs: number
}

/**
 * Decision is the answer to "may this go ahead now?". It is a new object that never changes
 * later. All times are durations in milliseconds, with a fraction of up to three digits.
 */
export interface Decision {
  /** Whether the request may go ahead. */
  readonly allowed: boolean
  /** The most units that can ever remain: the least of all rules. */
  readonly capacity: number
  /** Whole units that would pass now: the least of all rules, never below 0. */
  readonly remaining: number
  /** 0 when allowed; else how long until this cost would pass if nothing else happened. */
  readonly retryAfterMs: number
  /** How long until the key is fresh: indistinguishable from one never seen. */
  readonly resetAfterMs: number
  /** How long an allowed request must be held for its slot; above 0 only with a leaky bucket. */
  readonly delayMs: number
  /** The deciding rule: when refused the one with the longest wait, else the least remaining. */
  readonly rule: string
  /** The part of each rule, in the order of the rules. */
  readonly rules: readonly RuleDecision[]
  /** Where the decision came from. */
  readonly source: Source
}

const failures = sharedMap<Decision, unknown>('failures')

/** noteFailure records why a decision was made without the store, for `failureOf`. */
export function noteFailure(decision: Decision, error: unknown): Decision {
  failures.set(decision, error)
  return decision
}

/** failureOf returns why a `'closed'` decision was made without the store. */
export function failureOf(decision: Decision): unknown {
  return failures.get(decision)
}

/** withoutDelay returns a copy of an admitted decision with its delays set to 0. */
export function withoutDelay(decision: Decision): Decision {
  if (decision.delayMs === 0) return decision
  const rules = decision.rules.map((rule) => ({ ...rule, delayMs: 0 }))
  return { ...decision, delayMs: 0, rules }
}
