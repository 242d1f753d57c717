import type { Decision, RuleDecision } from '../decision.ts'
import type { Rule } from '../rule.ts'

/** Dialect is a way to tell clients of their limits: X-RateLimit-* or one of the IETF's drafts. */
export type Dialect = 'x' | 'draft-6' | 'draft-7' | 'draft-11'

/** Field is a header field of a response: name and value. */
export type Field = readonly [name: string, value: string]

/** Writes the fields of one dialect. `rule` is the deciding one, `all` those that have a limit. */
type Writer = (rule: RuleDecision, all: readonly RuleDecision[], facts: Facts) => Field[]

interface Facts {
  /** RateLimit-Policy with names, and without. */
  readonly named: string
  readonly anonymous: string
  readonly nowMs: number
}

const writers: Record<Dialect, Writer> = {
  x: (rule, _all, { nowMs }) => [
    ['X-RateLimit-Limit', String(rule.capacity)],
    ['X-RateLimit-Remaining', String(rule.remaining)],
    ['X-RateLimit-Reset', String(Math.ceil((nowMs + waitMs(rule)) / 1_000))],
  ],
  'draft-6': (rule, _all, { anonymous }) => [
    ['RateLimit-Limit', String(rule.capacity)],
    ['RateLimit-Remaining', String(rule.remaining)],
    ['RateLimit-Reset', String(secondsOf(rule))],
    ['RateLimit-Policy', anonymous],
  ],
  'draft-7': (rule, _all, { anonymous }) => [
    ['RateLimit', `limit=${rule.capacity}, remaining=${rule.remaining}, reset=${secondsOf(rule)}`],
    ['RateLimit-Policy', anonymous],
  ],
  'draft-11': (_rule, all, { named }) => [
    [
      'RateLimit',
      all.map((each) => `${quoted(each.rule)};r=${each.remaining};t=${secondsOf(each)}`).join(', '),
    ],
    ['RateLimit-Policy', named],
  ],
}

/** dialects are all there are. */
export const dialects = Object.keys(writers) as Dialect[]

/**
 * fieldsOf tells a client of its limits, on success as on refusal. Nothing is told where nobody
 * counted (a store that is away), or where there is no limit.
 */
export function fieldsOf(
  wanted: readonly Dialect[],
  decision: Decision,
  rules: readonly Rule[],
  nowMs: number,
): Field[] {
  const { source, retryAfterMs } = decision
  if (source === 'open' || source === 'closed') return []
  let all = decision.rules.filter(({ capacity }) => capacity !== Number.POSITIVE_INFINITY)
  // Whatever the rules would say, nothing passes.
  if (source === 'blocked') all = all.map((each) => ({ ...each, remaining: 0, retryAfterMs }))
  const rule = all.find((each) => each.rule === decision.rule)
  if (!rule) return []
  const facts = { ...policyOf(rules), nowMs }
  return wanted.flatMap((dialect) => writers[dialect](rule, all, facts))
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

const policies = new WeakMap<readonly Rule[], { named: string; anonymous: string }>()

/** RateLimit-Policy says what holds for every request, so it is written once. */
function policyOf(rules: readonly Rule[]) {
  let policy = policies.get(rules)
  if (!policy) {
    const limited = rules.filter(({ capacity }) => capacity !== Number.POSITIVE_INFINITY)
    const parts = limited.map(({ name, capacity, fullUs, fullRest }) => {
      const seconds = Math.ceil((fullUs + Math.sign(fullRest)) / 1_000_000)
      return { name, capacity, seconds }
    })
    policy = {
      named: parts
        .map((each) => `${quoted(each.name)};q=${each.capacity};w=${each.seconds}`)
        .join(', '),
      anonymous: parts.map((each) => `${each.capacity};w=${each.seconds}`).join(', '),
    }
    policies.set(rules, policy)
  }
  return policy
}

/** A string of RFC 9651; names of rules are printable ASCII. */
function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}

/** exposed is the value of Access-Control-Expose-Headers that lets scripts read the fields. */
export function exposed(fields: readonly Field[]): string {
  return [...fields.map(([name]) => name), 'Retry-After'].join(', ')
}
