import type { RuleDecision } from '../core/decision.ts'
import { mulDiv } from '../core/exact.ts'
import type { Rule } from '../core/rule.ts'

/** Field is a header field of a response: its name, in lower case for speed, and its value. */
export type Field = readonly [name: string, value: string]

/** Announced is the policy of a rule that clients see: `quota` units in `windowS` seconds. */
export interface Announced {
  readonly rule: string
  /** The start of an item of RateLimit: the name and `;r=`. */
  readonly head: string
  readonly quota: number
  /** Whole seconds, above 0; 0 if the rule holds units. */
  readonly windowS: number
  /** Whether `quota` is units held at once, which have no window. */
  readonly holds: boolean
}

/** Announcements are the parts of header fields that depend only on the rules. */
export interface Announcements {
  /** One for each rule that has a limit, in their order. */
  readonly all: readonly Announced[]
  /** The items of RateLimit-Policy, with the names of rules. */
  readonly items: readonly string[]
  /** RateLimit-Policy with names and without; undefined if no rule has a limit, or none is known. */
  readonly named: Field | undefined
  readonly anonymous: Field | undefined
}

/** The largest integer of RFC 9651. */
const LARGEST_INTEGER = 999_999_999_999_999

const known = new WeakMap<readonly Rule[], Announcements>()

/** announcementsOf builds the announcements of a list of rules, once per list. */
export function announcementsOf(rules: readonly Rule[]): Announcements {
  let announcements = known.get(rules)
  if (!announcements) {
    announcements = announce(rules)
    known.set(rules, announcements)
  }
  return announcements
}

function announce(rules: readonly Rule[]): Announcements {
  const limited = rules.filter(({ capacity }) => capacity !== Number.POSITIVE_INFINITY)
  const all = limited.map((rule) => announcedOf(rule))
  const parts = all.map(({ quota, windowS, holds }, i) => {
    if (holds) return `${quota};qu="concurrent-requests"`
    const { limit, capacity } = limited[i]
    return `${quota};w=${windowS}${capacity < limit ? `;sluice-burst=${capacity}` : ''}`
  })
  const items = parts.map((part, i) => `${quoted(all[i].rule)};q=${part}`)
  // The older drafts support only requests in a window.
  const rates = parts.filter((_, i) => !all[i].holds)
  return { all, items, named: policyField(items), anonymous: policyField(rates) }
}

/**
 * policyField returns RateLimit-Policy with these items; undefined for none, since an empty field
 * is malformed.
 */
export function policyField(items: readonly string[]): Field | undefined {
  return items.length > 0 ? ['ratelimit-policy', items.join(', ')] : undefined
}

/**
 * Announces a rule whose capacity is below its limit by its rate, so that clients can pace
 * themselves, and any other rule by its capacity and the time in which that refills.
 */
function announcedOf(rule: Rule): Announced {
  const { name, limit, perUs, capacity, fullUs, fullRest, algorithm } = rule
  const { holds } = algorithm
  const head = `${quoted(name)};r=`
  if (holds) return { rule: name, head, quota: capacity, windowS: 0, holds }
  if (capacity < limit) {
    const windowS = Math.ceil(perUs / 1_000_000)
    const quota = mulDiv(limit, windowS * 1_000_000, perUs)
    return { rule: name, head, quota: Math.min(quota, LARGEST_INTEGER), windowS, holds }
  }
  const windowS = Math.ceil((fullUs + Math.sign(fullRest)) / 1_000_000)
  return { rule: name, head, quota: capacity, windowS, holds }
}

/**
 * secondsOf returns the effective window for `remaining` units, in whole seconds. The remaining
 * units never suggest a higher rate than the policy. While units remain, the window is never longer
 * than that of the policy. Without remaining units it is the time to the next unit: a client that
 * waits that long is admitted.
 */
export function secondsOf(each: RuleDecision, policy: Announced | undefined): number {
  if (each.retryAfterMs > 0) return Math.ceil(each.retryAfterMs / 1_000)
  const next = Math.ceil(each.nextAfterMs / 1_000)
  if (policy === undefined || each.remaining === 0) return next
  const { quota, windowS } = policy
  // ceil(remaining · window / quota), exact.
  const paced = windowS - mulDiv(quota - unitsLeft(each, quota), windowS, quota)
  return next > paced ? Math.min(next, windowS) : paced
}

/**
 * unitsOf returns the remaining units to announce for a number of seconds. After a refusal the time
 * is short, and all remaining units would suggest a higher rate than the policy.
 */
export function unitsOf(
  each: RuleDecision,
  policy: Announced | undefined,
  seconds: number,
): number {
  if (policy === undefined) return each.remaining
  const { quota, windowS } = policy
  const left = unitsLeft(each, quota)
  if (each.retryAfterMs === 0 || seconds >= windowS) return left
  return Math.min(left, mulDiv(seconds, quota, windowS))
}

function unitsLeft({ remaining }: RuleDecision, quota: number): number {
  return remaining < quota ? remaining : quota
}

/** isHeld tells whether a rule is known to hold units. `i` is its likely index. */
export function isHeld(announced: Announcements, rule: string, i: number): boolean {
  return policyOf(announced, rule, i)?.holds === true
}

/** policyOf finds the policy of a rule. `i` is its likely index. */
export function policyOf({ all }: Announcements, rule: string, i: number): Announced | undefined {
  if (i < all.length && all[i].rule === rule) return all[i]
  for (let j = 0; j < all.length; j += 1) if (all[j].rule === rule) return all[j]
  return undefined
}

const MOST_NAMES = 1_000
const names = new Map<string, string>()

/** quoted returns a name as a string of RFC 9651. Names of rules are printable ASCII. */
export function quoted(name: string): string {
  let text = names.get(name)
  if (text === undefined) {
    text = `"${name.replace(/["\\]/g, '\\$&')}"`
    if (names.size >= MOST_NAMES) names.clear()
    names.set(name, text)
  }
  return text
}
