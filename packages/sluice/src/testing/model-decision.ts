import type { Decision, RuleDecision } from '../core/decision.ts'
import type { Rule } from '../core/rule.ts'
import type { Meter } from './meters.ts'

/** Longer than any state lasts: a hundred years of debt and a window. */
const FAR_US = 2 ** 52

/** standing returns the decision of one rule, with its members in the same order as in stores. */
export function standing(
  { name, capacity }: Rule,
  meter: Meter,
  nowUs: number,
  retryAfterMs: number,
) {
  const remaining = most(capacity, (units) => meter.passes(units, nowUs))
  const isFull = remaining === capacity
  return {
    rule: name,
    capacity,
    remaining,
    retryAfterMs,
    resetAfterMs: first((us) => meter.isFresh(nowUs + us)) / 1_000,
    nextAfterMs: isFull ? 0 : first((us) => meter.passes(remaining + 1, nowUs + us)) / 1_000,
  }
}

/**
 * summary combines the decisions of rules with a block. If all rules count the same units, it has
 * the least and the longest of them. If costs differ by rule, or units are held, `capacity` and
 * `remaining` are those of `rule`.
 */
export function summary(
  each: readonly RuleDecision[],
  isHeld: readonly boolean[],
  blockedMs: number,
  isOneCost: boolean,
): Omit<Decision, 'allowed'> {
  const countsSame = isOneCost && !isHeld.includes(true)
  const least = each.reduce((a, b) => (b.remaining < a.remaining ? b : a))
  const told = countsSame ? longestOf(each, each[0]) : longestOf(each, scarcest(each, isHeld))
  const rule = countsSame && told.retryAfterMs === 0 ? least.rule : told.rule
  return {
    capacity: countsSame ? Math.min(...each.map((one) => one.capacity)) : told.capacity,
    remaining: blockedMs > 0 ? 0 : (countsSame ? least : told).remaining,
    retryAfterMs: Math.max(...each.map((one) => one.retryAfterMs), blockedMs),
    resetAfterMs: Math.max(...each.map((one) => one.resetAfterMs), blockedMs),
    delayMs: Math.max(...each.map((one) => one.delayMs)),
    rule,
    rules: each,
    source: blockedMs > 0 ? 'blocked' : 'store',
  }
}

/** Returns the rule with the longest wait; `first` if none has a longer one. */
function longestOf(each: readonly RuleDecision[], first: RuleDecision): RuleDecision {
  return each.reduce((a, b) => (b.retryAfterMs > a.retryAfterMs ? b : a), first)
}

/** Returns the rate with the least remaining / capacity; if all rules hold units, the hold. */
function scarcest(each: readonly RuleDecision[], isHeld: readonly boolean[]): RuleDecision {
  const part = ({ remaining, capacity }: RuleDecision) =>
    capacity === Number.POSITIVE_INFINITY ? 1 : remaining / capacity
  const rates = each.filter((_, i) => !isHeld[i])
  return (rates.length > 0 ? rates : each).reduce((a, b) => (part(b) < part(a) ? b : a))
}

/**
 * first returns the first whole number for which `holds` is true. It must stay true from there on.
 */
export function first(holds: (n: number) => boolean): number {
  if (holds(0)) return 0
  let no = 0
  let yes = 1
  while (!holds(yes)) {
    no = yes
    yes *= 2
    if (yes > FAR_US) throw new Error('model: a wait never ends')
  }
  while (yes - no > 1) {
    const middle = Math.floor((no + yes) / 2)
    if (holds(middle)) yes = middle
    else no = middle
  }
  return yes
}

/** Returns the largest whole number up to `limit` for which `holds` is true; 0 if there is none. */
function most(limit: number, holds: (n: number) => boolean): number {
  if (holds(limit)) return limit
  return Math.max(0, first((n) => !holds(n)) - 1)
}
