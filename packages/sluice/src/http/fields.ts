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

/** Dialect is a way to tell clients of their limits: X-RateLimit-* or one of the IETF's drafts. */
export type Dialect = 'x' | 'draft-6' | 'draft-7' | 'draft-11'

/** Facts are what the writers of one response have in common. */
interface Facts {
  /** The rule that the fields of one rule describe, if any, its policy if that is known, and all rules. */
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

/** The rest of an item. When held units come back is not known, so that they have no `t`. */
function leftOf(each: RuleDecision, policy: Announced | undefined): string {
  if (policy?.holds) return String(each.remaining)
  const seconds = secondsOf(each, policy)
  return `${unitsOf(each, policy, seconds)};t=${seconds}`
}

function push(fields: Field[], field: Field | undefined): void {
  if (field !== undefined) fields.push(field)
}

/** dialects are all there are. */
export const dialects = Object.keys(writers) as Dialect[]

const NONE: readonly Field[] = []

/**
 * fieldsOf tells a client of its limits, on success as on refusal. Nothing is told where nobody
 * counted (a store that is away), or where there is no limit. `partition` is by `partitionOf`.
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
 * The rule that the fields of one rule describe: the deciding one, or where that holds units, the rate
 * of which the least part is left.
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

/** Whatever the rules would say, nothing passes before the block ends. */
function blockedOf({ rules, retryAfterMs }: Decision): readonly RuleDecision[] {
  return rules.map((each) => ({
    ...each,
    remaining: 0,
    retryAfterMs,
    resetAfterMs: Math.max(each.resetAfterMs, retryAfterMs),
  }))
}

/**
 * violatedOf are the names of the rules that a refused request is refused by: each that would refuse
 * it alone. A block holds for every rule that has a limit.
 */
export function violatedOf({ rules, source }: Decision): string[] {
  return rules
    .filter(({ capacity }) => capacity !== Number.POSITIVE_INFINITY)
    .filter(({ retryAfterMs }) => retryAfterMs > 0 || source === 'blocked')
    .map(({ rule }) => rule)
}

/**
 * retryAfterOf is the value of Retry-After for a refusal: whole seconds, at least one, and never before
 * the rates would admit the request. Of held units only the latest time of their return is known, and
 * nearly all come back much earlier: where nothing else refuses, a client may try again in a second.
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

/** isFull tells a refusal for which only units that are held are missing. */
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
 * exposed is the value of Access-Control-Expose-Headers that lets scripts read the fields, besides
 * `others`, which it was before.
 */
export function exposed(fields: readonly Field[], others?: unknown): string {
  const names = [...fields.map(([name]) => spelt(name)), 'Retry-After']
  return (others === undefined ? names : [others, ...names]).join(', ')
}

/** The usual spelling, for people who read it: X-RateLimit-Limit. */
function spelt(name: string): string {
  return name
    .replace(/ratelimit/, 'RateLimit')
    .replace(/(^|-)[a-z]/g, (first) => first.toUpperCase())
}

/** hasOrigin looks through raw headers: to have a platform sort them into an object takes longer. */
export function hasOrigin({ rawHeaders }: { readonly rawHeaders: readonly string[] }): boolean {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i].length === 6 && rawHeaders[i].toLowerCase() === 'origin') return true
  }
  return false
}
