import type { Decision, RuleDecision } from '../core/decision.ts'
import type { Rule } from '../core/rule.ts'
import { createMeter, type Meter } from './meters.ts'

/**
 * Model is the specification as slow, obviously right code. Every answer comes from one question
 * asked of lists of instants and exact fractions, "would so many units pass at that instant?":
 * waits and remaining units are searched for, never computed. Stores are compared with it.
 */
export interface Model {
  decide(key: string, rules: readonly Rule[], cost: number, nowUs: number, spend: boolean): Decision
  charge(key: string, rules: readonly Rule[], cost: number, nowUs: number): void
  refund(key: string, rules: readonly Rule[], cost: number, nowUs: number): void
  /** A refused request: it spends nothing, but starts the refill of these rules. */
  carry(key: string, rules: readonly Rule[], nowUs: number): void
  block(key: string, untilUs: number): void
  unblock(key: string): void
  reset(key: string): void
}

/** Longer than any state lasts: a hundred years of debt, and a window on top. */
const FAR_US = 2 ** 52

/** createModel makes a model without any keys. */
export function createModel(): Model {
  const meters = new Map<string, Map<string, Meter>>()
  const blocked = new Map<string, number>()

  /** The meters of a key, carried over to these rules. A peek gets copies and changes nothing. */
  function metersOf(key: string, rules: readonly Rule[], nowUs: number, isPeek = false): Meter[] {
    const own = meters.get(key) ?? new Map<string, Meter>()
    meters.set(key, own)
    return rules.map((rule) => {
      const id = JSON.stringify([rule.name, rule.algorithm.name])
      const kept = own.get(id) ?? createMeter(rule)
      own.set(id, kept)
      const meter = isPeek ? kept.copy() : kept
      meter.carry(rule, nowUs)
      return meter
    })
  }

  return {
    decide(key, rules, cost, nowUs, spend) {
      const own = metersOf(key, rules, nowUs, !spend)
      const blockedMs = Math.max(0, (blocked.get(key) ?? 0) - nowUs) / 1_000
      const waits = own.map((meter) => first((us) => meter.passes(cost, nowUs + us)))
      const delays = own.map((meter, i) =>
        cost > 0 && rules[i].algorithm.delays ? first((us) => meter.isFresh(nowUs + us)) : 0,
      )
      const allowed = blockedMs === 0 && waits.every((us) => us === 0)
      if (allowed && spend && cost > 0) for (const meter of own) meter.spend(cost, nowUs)
      const each = own.map((meter, i) => {
        const delayMs = allowed ? delays[i] / 1_000 : 0
        return { ...standing(rules[i], meter, nowUs, waits[i] / 1_000), delayMs }
      })
      return { allowed, ...summary(each, blockedMs) }
    },
    charge(key, rules, cost, nowUs) {
      if (cost === 0) return
      for (const meter of metersOf(key, rules, nowUs)) meter.spend(cost, nowUs)
    },
    refund(key, rules, cost, nowUs) {
      for (const meter of metersOf(key, rules, nowUs)) meter.refund(cost, nowUs)
    },
    carry: (key, rules, nowUs) => void metersOf(key, rules, nowUs),
    block: (key, untilUs) => void blocked.set(key, untilUs),
    unblock: (key) => void blocked.delete(key),
    reset(key) {
      meters.delete(key)
      blocked.delete(key)
    },
  }
}

/** What a decision says of a rule, in the order of its members in stores. */
function standing({ name, capacity }: Rule, meter: Meter, nowUs: number, retryAfterMs: number) {
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

/** The least and the longest of what the rules and the block say. */
function summary(each: readonly RuleDecision[], blockedMs: number): Omit<Decision, 'allowed'> {
  const longest = each.reduce((a, b) => (b.retryAfterMs > a.retryAfterMs ? b : a))
  const least = each.reduce((a, b) => (b.remaining < a.remaining ? b : a))
  return {
    capacity: Math.min(...each.map((rule) => rule.capacity)),
    remaining: blockedMs > 0 ? 0 : least.remaining,
    retryAfterMs: Math.max(longest.retryAfterMs, blockedMs),
    resetAfterMs: Math.max(...each.map((rule) => rule.resetAfterMs), blockedMs),
    delayMs: Math.max(...each.map((rule) => rule.delayMs)),
    rule: longest.retryAfterMs > 0 ? longest.rule : least.rule,
    rules: each,
    source: blockedMs > 0 ? 'blocked' : 'store',
  }
}

/** The first whole number from 0 up for which `holds`; once it holds, it goes on holding. */
function first(holds: (n: number) => boolean): number {
  if (holds(0)) return 0
  let no = 0
  let yes = 1
  while (!holds(yes)) {
    no = yes
    yes *= 2
    if (yes > FAR_US) throw new Error('model: a wait without end')
  }
  while (yes - no > 1) {
    const middle = Math.floor((no + yes) / 2)
    if (holds(middle)) yes = middle
    else no = middle
  }
  return yes
}

/** The largest whole number up to `limit` for which `holds`; 0 if there is none. */
function most(limit: number, holds: (n: number) => boolean): number {
  if (holds(limit)) return limit
  return Math.max(0, first((n) => !holds(n)) - 1)
}
