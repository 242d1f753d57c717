import type { Rule } from './rule.ts'

/** Where a decision came from. An in-process store answers `'store'` or `'blocked'`. */
export type Source = 'store' | 'cache' | 'lease' | 'local' | 'open' | 'closed' | 'blocked'

/** RuleDecision is one rule's own part in a decision. */
export interface RuleDecision {
  readonly rule: string
  readonly capacity: number
  readonly remaining: number
  /** 0 when this rule does not refuse. */
  readonly retryAfterMs: number
  readonly resetAfterMs: number
  /** How long until `remaining` grows by one if nothing else happens; 0 when the rule is full. */
  readonly nextAfterMs: number
  readonly delayMs: number
}

/**
 * Decision is the answer to "may this go ahead now?". It is a fresh object that nobody changes
 * later. All times are durations in milliseconds that may carry a fraction (whole microseconds).
 */
export interface Decision {
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
  readonly rules: readonly RuleDecision[]
  readonly source: Source
}

const failures = new WeakMap<Decision, unknown>()

/** noteFailure remembers why a decision was made without asking its store. */
export function noteFailure(decision: Decision, error: unknown): Decision {
  failures.set(decision, error)
  return decision
}

/** failureOf tells why a `'closed'` decision was made without asking its store. */
export function failureOf(decision: Decision): unknown {
  return failures.get(decision)
}

const none = undefined as never

/**
 * decisionShapes are the first decisions that are ever made, with nothing in them. V8 boxes every
 * number in a field that has held nothing but numbers, some with a fraction; where there was
 * something else before, whole ones are not boxed, and most of these are whole. Exported, since
 * what nobody holds is forgotten.
 */
export const decisionShapes: readonly [RuleDecision, Decision] = [
  {
    rule: none,
    capacity: none,
    remaining: none,
    retryAfterMs: none,
    resetAfterMs: none,
    nextAfterMs: none,
    delayMs: none,
  },
  {
    allowed: none,
    capacity: none,
    remaining: none,
    retryAfterMs: none,
    resetAfterMs: none,
    delayMs: none,
    rule: none,
    rules: none,
    source: none,
  },
]

/** Readings are what a store works out for one decision: a place per rule, microseconds and units. */
export interface Readings {
  readonly waitUs: Float64Array
  readonly remaining: Float64Array
  readonly resetUs: Float64Array
  /** Until `remaining` grows by one; 0 where it is the capacity. */
  readonly nextUs: Float64Array
  readonly delayUs: Float64Array
  /** Microseconds the key is still blocked; 0 when it is not. */
  blockedUs: number
  /** Where they come from. */
  source: Source
}

/** newReadings has room for `count` rules. */
export function newReadings(count: number): Readings {
  return {
    waitUs: new Float64Array(count),
    remaining: new Float64Array(count),
    resetUs: new Float64Array(count),
    nextUs: new Float64Array(count),
    delayUs: new Float64Array(count),
    blockedUs: 0,
    source: 'store',
  }
}

/** decisionOf turns readings into a decision; a rule with a wait refuses, and so does a block. */
export function decisionOf(rules: readonly Rule[], readings: Readings): Decision {
  const { waitUs, remaining, resetUs, delayUs, blockedUs } = readings
  if (rules.length === 1 && blockedUs === 0) return decisionOfOne(rules[0], readings)
  let longest = 0
  let least = 0
  let capacity = rules[0].capacity
  let reset = resetUs[0]
  let delay = delayUs[0]
  for (let i = 1; i < rules.length; i += 1) {
    if (waitUs[i] > waitUs[longest]) longest = i
    if (remaining[i] < remaining[least]) least = i
    if (rules[i].capacity < capacity) capacity = rules[i].capacity
    if (resetUs[i] > reset) reset = resetUs[i]
    if (delayUs[i] > delay) delay = delayUs[i]
  }
  const wait = waitUs[longest] > blockedUs ? waitUs[longest] : blockedUs
  const allowed = wait === 0
  const each = [ruleDecision(rules[0], readings, 0, allowed)]
  for (let i = 1; i < rules.length; i += 1) each.push(ruleDecision(rules[i], readings, i, allowed))
  return {
    allowed,
    capacity,
    remaining: blockedUs > 0 ? 0 : remaining[least],
    retryAfterMs: wait / 1_000,
    resetAfterMs: (reset > blockedUs ? reset : blockedUs) / 1_000,
    delayMs: allowed ? delay / 1_000 : 0,
    rule: rules[waitUs[longest] > 0 ? longest : least].name,
    rules: each,
    source: blockedUs > 0 ? 'blocked' : readings.source,
  }
}

/** The decision of one rule, for a key that is not blocked. */
function decisionOfOne(rule: Rule, readings: Readings): Decision {
  const allowed = readings.waitUs[0] === 0
  const only = ruleDecision(rule, readings, 0, allowed)
  return {
    allowed,
    capacity: only.capacity,
    remaining: only.remaining,
    retryAfterMs: only.retryAfterMs,
    resetAfterMs: only.resetAfterMs,
    delayMs: only.delayMs,
    rule: only.rule,
    rules: [only],
    source: readings.source,
  }
}

function ruleDecision(
  { name, capacity }: Rule,
  { waitUs, remaining, resetUs, nextUs, delayUs }: Readings,
  i: number,
  allowed: boolean,
): RuleDecision {
  return {
    rule: name,
    capacity,
    remaining: remaining[i],
    retryAfterMs: waitUs[i] / 1_000,
    resetAfterMs: resetUs[i] / 1_000,
    nextAfterMs: nextUs[i] / 1_000,
    delayMs: allowed ? delayUs[i] / 1_000 : 0,
  }
}

/** withoutDelay is an admitted decision whose delay is over. */
export function withoutDelay(decision: Decision): Decision {
  const rules = decision.rules.map((rule) => ({ ...rule, delayMs: 0 }))
  return { ...decision, delayMs: 0, rules }
}
