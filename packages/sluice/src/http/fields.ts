import type { Decision, RuleDecision } from '../core/decision.ts'
import type { Rule } from '../core/rule.ts'
import {
  type Announced,
  type Announcements,
  announcementsOf,
  type Field,
  isHeld,
  policyField,
  policyOf,
  quoted,
  secondsOf,
  unitsOf,
} from './announced.ts'

export type { Field }

/** Dialect is a format of rate-limit headers: X-RateLimit-* or one of the IETF's drafts. */
export type Dialect = 'x' | 'draft-6' | 'draft-7' | 'draft-11'

/** Facts are the data that all header writers of a response share. */
interface Facts {
  /** The rule for fields that describe one rule, if any; its policy, if known; and all rules. */
  readonly rule: RuleDecision | undefined
  readonly policy: Announced | undefined
  readonly all: readonly RuleDecision[]
  readonly announced: Announcements
  /** The parameter `pk`, or ''. */
  readonly partition: string
  readonly nowMs: number
}

const writers: Record<Dialect, (fields: Field[], facts: Facts) => void> = {
  x(fields, { rule, nowMs }) {
    if (rule === undefined) return
    fields.push(
      ['x-ratelimit-limit', String(rule.capacity)],
      ['x-ratelimit-remaining', String(rule.remaining)],
      ['x-ratelimit-reset', String(Math.ceil((nowMs + rule.resetAfterMs) / 1_000))],
    )
  },
  'draft-6'(fields, { rule, policy, announced }) {
    if (rule === undefined) return
    const seconds = secondsOf(rule, policy)
    fields.push(
      ['ratelimit-limit', String(policy?.quota ?? rule.capacity)],
      ['ratelimit-remaining', String(unitsOf(rule, policy, seconds))],
      ['ratelimit-reset', String(seconds)],
    )
    push(fields, announced.anonymous)
  },
  'draft-7'(fields, { rule, policy, announced }) {
    if (rule === undefined) return
    const seconds = secondsOf(rule, policy)
    const limit = policy?.quota ?? rule.capacity
    const left = unitsOf(rule, policy, seconds)
    fields.push(['ratelimit', `limit=${limit}, remaining=${left}, reset=${seconds}`])
    push(fields, announced.anonymous)
  },
  'draft-11'(fields, { all, announced, partition }) {
    let value = ''
    let place = 0
    for (const each of all) {
      if (each.capacity === Number.POSITIVE_INFINITY) continue
      const policy = policyOf(announced, each.rule, place)
      if (place > 0) value += ', '
      value += policy === undefined ? `${quoted(each.rule)};r=` : policy.head
      value += `${leftOf(each, policy)}${partition}`
      place += 1
    }
    if (place === 0) return
    fields.push(['ratelimit', value])
    const { items, named } = announced
    push(fields, partition === '' ? named : policyField(items.map((item) => item + partition)))
  },
}

/** Returns the rest of an item. Held units have no `t`, since their return is not known. */
function leftOf(each: RuleDecision, policy: Announced | undefined): string {
  if (policy?.holds) return String(each.remaining)
  const seconds = secondsOf(each, policy)
  return `${unitsOf(each, policy, seconds)};t=${seconds}`
}

function push(fields: Field[], field: Field | undefined): void {
  if (field !== undefined) fields.push(field)
}

/** dialects lists all dialects. */
export const dialects = Object.keys(writers) as Dialect[]

const NONE: readonly Field[] = []

/**
 * fieldsOf returns the rate-limit headers, for admitted and refused requests. Requests that were not
 * counted (the store is down) or have no limit carry none. `partition` is by `partitionOf`.
 */
export function fieldsOf(
  wanted: readonly Dialect[],
  decision: Decision,
  rules: readonly Rule[],
  nowMs: number,
  partition = '',
): readonly Field[] {
  const { source } = decision
  if (wanted.length === 0 || source === 'open' || source === 'closed') return NONE
  const all = source === 'blocked' ? blockedOf(decision) : decision.rules
  const announced = announcementsOf(rules)
  const rule = rateOf(all, decision.rule, announced)
  const policy = rule && policyOf(announced, rule.rule, 0)
  const facts: Facts = { rule, policy, all, announced, partition, nowMs }
  const fields: Field[] = []
  for (const dialect of wanted) writers[dialect](fields, facts)
  return fields
}

/**
 * Returns the rule for fields that describe one rule: the deciding one, or, if that holds units, the
 * rate with the least remaining / capacity.
 */
function rateOf(
  all: readonly RuleDecision[],
  name: string,
  announced: Announcements,
): RuleDecision | undefined {
  for (let i = 0; i < all.length; i += 1) {
    if (all[i].rule === name && isRate(all[i], announced, i)) return all[i]
  }
  let told: RuleDecision | undefined
  for (let i = 0; i < all.length; i += 1) {
    const each = all[i]
    if (!isRate(each, announced, i)) continue
    if (!told || each.remaining * told.capacity < told.remaining * each.capacity) told = each
  }
  return told
}

function isRate(each: RuleDecision, announced: Announcements, i: number): boolean {
  return each.capacity !== Number.POSITIVE_INFINITY && !isHeld(announced, each.rule, i)
}

/** Adapts the decisions of rules to a block: nothing passes before it ends. */
function blockedOf({ rules, retryAfterMs }: Decision): readonly RuleDecision[] {
  return rules.map((each) => ({
    ...each,
    remaining: 0,
    retryAfterMs,
    resetAfterMs: Math.max(each.resetAfterMs, retryAfterMs),
  }))
}

/**
 * violatedOf returns the names of the rules that refuse a request: each that would refuse it alone.
 * A block counts for every rule that has a limit.
 */
export function violatedOf({ rules, source }: Decision): string[] {
  return rules
    .filter(({ capacity }) => capacity !== Number.POSITIVE_INFINITY)
    .filter(({ retryAfterMs }) => retryAfterMs > 0 || source === 'blocked')
    .map(({ rule }) => rule)
}

/**
 * retryAfterOf returns the value of Retry-After for a refusal: whole seconds, at least one, and
 * never before the rates would admit the request. Held units usually come back long before their
 * latest return: if nothing else refuses, a client may try again in a second.
 */
export function retryAfterOf(decision: Decision, rules: readonly Rule[]): string {
  const { source, rules: all } = decision
  let waitMs = decision.retryAfterMs
  if (source !== 'blocked' && source !== 'closed' && holdsAny(rules)) {
    const announced = announcementsOf(rules)
    const rates = all.filter(({ rule }, i) => !isHeld(announced, rule, i))
    waitMs = Math.max(0, ...rates.map(({ retryAfterMs }) => retryAfterMs))
  }
  return String(Math.max(1, Math.ceil(waitMs / 1_000)))
}

/** isFull tells whether only rules that hold units refuse. */
export function isFull(decision: Decision, rules: readonly Rule[]): boolean {
  const announced = announcementsOf(rules)
  const violated = violatedOf(decision)
  return violated.length > 0 && violated.every((rule, i) => isHeld(announced, rule, i))
}

/** holdsAny tells whether any of these rules holds units. */
export function holdsAny(rules: readonly Rule[]): boolean {
  for (let i = 0; i < rules.length; i += 1) if (rules[i].algorithm.holds) return true
  return false
}

/**
 * exposed returns the value of Access-Control-Expose-Headers that lets scripts read the fields, in
 * addition to its previous value `others`.
 */
export function exposed(fields: readonly Field[], others?: unknown): string {
  const names = [...fields.map(([name]) => spelt(name)), 'Retry-After']
  return (others === undefined ? names : [others, ...names]).join(', ')
}

/** Returns the usual spelling for human readers: X-RateLimit-Limit. */
function spelt(name: string): string {
  return name
    .replace(/ratelimit/, 'RateLimit')
    .replace(/(^|-)[a-z]/g, (first) => first.toUpperCase())
}

/**
 * hasOrigin tells whether there is an Origin header. Searching raw headers is faster than
 * `headers`.
 */
export function hasOrigin({ rawHeaders }: { readonly rawHeaders: readonly string[] }): boolean {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i].length === 6 && rawHeaders[i].toLowerCase() === 'origin') return true
  }
  return false
}
