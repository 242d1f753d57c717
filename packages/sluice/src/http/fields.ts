import type { Decision, RuleDecision } from '../decision.ts'
import type { Rule } from '../rule.ts'

/** Dialect is a way to tell clients of their limits: X-RateLimit-* or one of the IETF's drafts. */
export type Dialect = 'x' | 'draft-6' | 'draft-7' | 'draft-11'

/** Field is a header field of a response: name, in lower case since that is quicker, and value. */
export type Field = readonly [name: string, value: string]

/** Writes the fields of one dialect about `rule`, the deciding one, or all that have a limit. */
type Writer = (
  fields: Field[],
  rule: RuleDecision,
  all: readonly RuleDecision[],
  facts: Facts,
  nowMs: number,
) => void

/** Facts are what is the same for every request, written once. */
interface Facts {
  /** RateLimit-Policy with names, and without. */
  readonly named: Field
  readonly anonymous: Field
}

const writers: Record<Dialect, Writer> = {
  x(fields, rule, _all, _facts, nowMs) {
    fields.push(
      ['x-ratelimit-limit', String(rule.capacity)],
      ['x-ratelimit-remaining', String(rule.remaining)],
      ['x-ratelimit-reset', String(Math.ceil((nowMs + waitMs(rule)) / 1_000))],
    )
  },
  'draft-6'(fields, rule, _all, { anonymous }) {
    fields.push(
      ['ratelimit-limit', String(rule.capacity)],
      ['ratelimit-remaining', String(rule.remaining)],
      ['ratelimit-reset', String(secondsOf(rule))],
      anonymous,
    )
  },
  'draft-7'(fields, rule, _all, { anonymous }) {
    const { capacity, remaining } = rule
    const value = `limit=${capacity}, remaining=${remaining}, reset=${secondsOf(rule)}`
    fields.push(['ratelimit', value], anonymous)
  },
  'draft-11'(fields, _rule, all, { named }) {
    let value = ''
    for (const each of all) {
      if (each.capacity === Number.POSITIVE_INFINITY) continue
      if (value !== '') value += ', '
      value += `${quoted(each.rule)};r=${each.remaining};t=${secondsOf(each)}`
    }
    fields.push(['ratelimit', value], named)
  },
}

/** dialects are all there are. */
export const dialects = Object.keys(writers) as Dialect[]

const NONE: readonly Field[] = []

/**
 * fieldsOf tells a client of its limits, on success as on refusal. Nothing is told where nobody
 * counted (a store that is away), or where there is no limit.
 */
export function fieldsOf(
  wanted: readonly Dialect[],
  decision: Decision,
  rules: readonly Rule[],
  nowMs: number,
): readonly Field[] {
  const { source } = decision
  if (wanted.length === 0 || source === 'open' || source === 'closed') return NONE
  const all = source === 'blocked' ? blockedOf(decision) : decision.rules
  const rule = ruleOf(all, decision.rule)
  if (!rule || rule.capacity === Number.POSITIVE_INFINITY) return NONE
  const facts = factsOf(rules)
  const fields: Field[] = []
  for (const dialect of wanted) writers[dialect](fields, rule, all, facts, nowMs)
  return fields
}

function ruleOf(all: readonly RuleDecision[], name: string): RuleDecision | undefined {
  for (let i = 0; i < all.length; i += 1) if (all[i].rule === name) return all[i]
  return undefined
}

/** Whatever the rules would say, nothing passes. */
function blockedOf({ rules, retryAfterMs }: Decision): readonly RuleDecision[] {
  return rules.map((each) => ({ ...each, remaining: 0, retryAfterMs }))
}

/**
 * retryAfterOf is the value of Retry-After for a refusal: whole seconds, at least one, and never
 * before the request would pass.
 */
export function retryAfterOf({ retryAfterMs }: Decision): string {
  return String(Math.max(1, Math.ceil(retryAfterMs / 1_000)))
}

/** How long until the request passes, if the rule refuses it, else until all is as it was. */
function waitMs({ retryAfterMs, resetAfterMs }: RuleDecision): number {
  return retryAfterMs > 0 ? retryAfterMs : resetAfterMs
}

function secondsOf(rule: RuleDecision): number {
  return Math.ceil(waitMs(rule) / 1_000)
}

const known = new WeakMap<readonly Rule[], Facts>()

function factsOf(rules: readonly Rule[]): Facts {
  let facts = known.get(rules)
  if (!facts) {
    const limited = rules.filter(({ capacity }) => capacity !== Number.POSITIVE_INFINITY)
    const parts = limited.map(({ name, capacity, fullUs, fullRest }) => {
      const seconds = Math.ceil((fullUs + Math.sign(fullRest)) / 1_000_000)
      return { name: quoted(name), rest: `${capacity};w=${seconds}` }
    })
    facts = {
      named: ['ratelimit-policy', parts.map(({ name, rest }) => `${name};q=${rest}`).join(', ')],
      anonymous: ['ratelimit-policy', parts.map(({ rest }) => rest).join(', ')],
    }
    known.set(rules, facts)
  }
  return facts
}

const MOST_NAMES = 1_000
const names = new Map<string, string>()

/** A string of RFC 9651; names of rules are printable ASCII. */
function quoted(name: string): string {
  let text = names.get(name)
  if (text === undefined) {
    text = `"${name.replace(/["\\]/g, '\\$&')}"`
    if (names.size >= MOST_NAMES) names.clear()
    names.set(name, text)
  }
  return text
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
