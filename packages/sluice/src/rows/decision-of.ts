import { type Cost, costAt } from '../core/cost.ts'
import type { Decision, RuleDecision } from '../core/decision.ts'
import type { Rule } from '../core/rule.ts'
import type { LaidRules } from './layout.ts'
import { type Row, stateOf } from './row.ts'

/**
 * decisionOf builds the decision about `cost` from the waits that `decideRow` stored in the set and
 * from the row's present state. `blockedUs` is how long the key is still blocked.
 */
export function decisionOf(
  set: LaidRules,
  row: Row,
  cost: Cost,
  blockedUs: number,
  nowUs: number,
): Decision {
  if (set.only === undefined || blockedUs > 0) {
    return decisionOfAll(set, row, cost, blockedUs, nowUs)
  }
  return decisionOfOne(set, set.only, row, cost as number, nowUs)
}

/** Builds the decision of a single rule, the usual case. */
function decisionOfOne(
  set: LaidRules,
  rule: Rule,
  { cells, base }: Row,
  cost: number,
  nowUs: number,
): Decision {
  const wait = set.waitUs[0]
  const at = base + set.onlyAt
  const { name, capacity, algorithm } = rule
  const remaining = algorithm.remaining(cells, at, rule, nowUs)
  const freshUs = algorithm.freshAtUs(cells, at, rule)
  const retryAfterMs = wait / 1_000
  const resetAfterMs = freshUs > nowUs ? (freshUs - nowUs) / 1_000 : 0
  const nextAfterMs = nextUs(rule, cells, at, cost, wait, remaining, nowUs) / 1_000
  return {
    allowed: wait === 0,
    capacity,
    remaining,
    retryAfterMs,
    resetAfterMs,
    delayMs: 0,
    rule: name,
    rules: [
      { rule: name, capacity, remaining, retryAfterMs, resetAfterMs, nextAfterMs, delayMs: 0 },
    ],
    source: 'store',
  }
}

/** Builds the decision of several rules, or of a blocked key. */
function decisionOfAll(
  set: LaidRules,
  row: Row,
  cost: Cost,
  blockedUs: number,
  nowUs: number,
): Decision {
  const { rules, waitUs } = set
  let allowed = blockedUs === 0
  for (let i = 0; i < rules.length; i += 1) if (waitUs[i] > 0) allowed = false
  const each: RuleDecision[] = []
  for (let i = 0; i < rules.length; i += 1) {
    each.push(ruleDecision(set, i, row, costAt(cost, i), allowed, nowUs))
  }
  if (set.holds || typeof cost !== 'number') return mixedDecision(rules, each, allowed, blockedUs)
  return sameDecision(each, allowed, blockedUs)
}

/** tellRules writes the decision of rule `i` to `each[places[i]]`. */
export function tellRules(
  set: LaidRules,
  row: Row,
  cost: Cost,
  allowed: boolean,
  nowUs: number,
  each: RuleDecision[],
  places: readonly number[],
): void {
  for (let i = 0; i < places.length; i += 1) {
    each[places[i]] = ruleDecision(set, i, row, costAt(cost, i), allowed, nowUs)
  }
}

/** sameDecision combines rules of one cost: the least capacity and remaining, the longest waits. */
export function sameDecision(
  each: readonly RuleDecision[],
  allowed: boolean,
  blockedUs: number,
): Decision {
  const blockedMs = blockedUs / 1_000
  if (each.length === 0) return ruleless(blockedMs)
  let longest = each[0]
  let least = longest
  let { capacity, resetAfterMs, delayMs } = longest
  for (let i = 1; i < each.length; i += 1) {
    const one = each[i]
    if (one.retryAfterMs > longest.retryAfterMs) longest = one
    if (one.remaining < least.remaining) least = one
    if (one.capacity < capacity) capacity = one.capacity
    if (one.resetAfterMs > resetAfterMs) resetAfterMs = one.resetAfterMs
    if (one.delayMs > delayMs) delayMs = one.delayMs
  }
  return {
    allowed,
    capacity,
    remaining: blockedUs > 0 ? 0 : least.remaining,
    retryAfterMs: Math.max(longest.retryAfterMs, blockedMs),
    resetAfterMs: Math.max(resetAfterMs, blockedMs),
    delayMs,
    rule: (longest.retryAfterMs > 0 ? longest : least).rule,
    rules: each,
    source: blockedUs > 0 ? 'blocked' : 'store',
  }
}

/** Returns the decision of a field without rules. */
function ruleless(blockedMs: number): Decision {
  const isBlocked = blockedMs > 0
  return {
    allowed: !isBlocked,
    capacity: Number.POSITIVE_INFINITY,
    remaining: isBlocked ? 0 : Number.POSITIVE_INFINITY,
    retryAfterMs: blockedMs,
    resetAfterMs: blockedMs,
    delayMs: 0,
    rule: '',
    rules: [],
    source: isBlocked ? 'blocked' : 'store',
  }
}

/**
 * mixedDecision combines rules that count different units, such as requests, tokens and held units.
 * Capacity and remaining are those of one rule: the one with the longest wait, else the one with the
 * least remaining / capacity. A rule that holds units qualifies only if it refuses, or if all rules
 * hold.
 */
export function mixedDecision(
  rules: readonly Rule[],
  each: readonly RuleDecision[],
  allowed: boolean,
  blockedUs: number,
): Decision {
  const same = sameDecision(each, allowed, blockedUs)
  if (each.length === 0) return same
  const rates = each.filter((_, i) => !rules[i].algorithm.holds)
  const [first, ...others] = rates.length > 0 ? rates : each
  let told = first
  for (const one of others) if (partLeft(one) < partLeft(told)) told = one
  for (const one of each) if (one.retryAfterMs > told.retryAfterMs) told = one
  const { rule, capacity } = told
  return { ...same, rule, capacity, remaining: blockedUs > 0 ? 0 : told.remaining }
}

function partLeft({ remaining, capacity }: RuleDecision): number {
  return capacity === Number.POSITIVE_INFINITY ? 1 : remaining / capacity
}

function ruleDecision(
  set: LaidRules,
  i: number,
  { cells, base, lists }: Row,
  cost: number,
  allowed: boolean,
  nowUs: number,
): RuleDecision {
  const rule = set.rules[i]
  const at = base + set.at[i]
  const state = stateOf(rule, cells, at, lists)
  const { name, capacity, algorithm } = rule
  const wait = set.waitUs[i]
  const remaining = algorithm.remaining(state, at, rule, nowUs)
  const freshUs = algorithm.freshAtUs(state, at, rule)
  return {
    rule: name,
    capacity,
    remaining,
    retryAfterMs: wait / 1_000,
    resetAfterMs: freshUs > nowUs ? (freshUs - nowUs) / 1_000 : 0,
    nextAfterMs: nextUs(rule, state, at, cost, wait, remaining, nowUs) / 1_000,
    delayMs: allowed ? set.delayUs[i] / 1_000 : 0,
  }
}

/**
 * Returns the microseconds until one unit more than `remaining` would pass; 0 if the rule is full.
 */
function nextUs(
  rule: Rule,
  state: Float64Array,
  at: number,
  cost: number,
  wait: number,
  remaining: number,
  nowUs: number,
): number {
  if (remaining >= rule.capacity) return 0
  // A refusal of exactly `remaining + 1` units has computed it already.
  if (wait > 0 && cost === remaining + 1) return wait
  return rule.algorithm.waitUs(state, at, rule, remaining + 1, nowUs)
}

const none = undefined as never

/**
 * Objects that give V8 a general representation for the number fields of decisions. In a field that
 * has only held numbers, some with a fraction, V8 boxes every number. In a field that has also held
 * something else, whole numbers are not boxed, and most of these are whole. They are a property of
 * an exported function because bundlers drop unused values and V8 drops hidden classes without
 * objects.
 */
decisionOf.shapes = [
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
] satisfies [RuleDecision, Decision]
