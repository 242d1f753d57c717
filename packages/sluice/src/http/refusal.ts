import type { Decision } from '../core/decision.ts'
import type { Rule } from '../core/rule.ts'
import type { CostByRule } from '../limiter/key-types.ts'
import { quoted } from './announced.ts'
import { type Field, isFull, retryAfterOf, violatedOf } from './fields.ts'
import { unitsFor } from './request-cost.ts'

/** Refusal is the response to a refused request. */
export interface Refusal {
  readonly status: number
  readonly fields: readonly Field[]
  readonly body: string
}

/** The registry of problem types. */
const REGISTRY = 'https://iana.org/assignments/http-problem-types#'

/** The header fields of every refusal. Caches must not store it. */
const plain: readonly Field[] = [
  ['content-type', 'application/problem+json'],
  ['cache-control', 'no-store'],
]

/** refusalOf returns the response to a refusal by these rules. */
export function refusalOf(decision: Decision, rules: readonly Rule[]): Refusal {
  const retryAfter = retryAfterOf(decision, rules)
  const violated = violatedOf(decision)
  if (decision.source === 'closed') {
    return problem(503, 'temporary-reduced-capacity', 'Temporary Reduced Capacity', {
      detail: 'Limits cannot be checked at the moment.',
      'violated-policies': violated,
      retryAfter,
    })
  }
  if (decision.source === 'blocked') {
    return problem(429, 'abnormal-usage-detected', 'Abnormal Usage Detected', {
      detail: `Blocked. Try again in ${seconds(retryAfter)}.`,
      'violated-policies': violated,
      retryAfter,
    })
  }
  return problem(429, 'quota-exceeded', 'Quota Exceeded', {
    detail: isFull(decision, rules)
      ? `Too many requests at once. Try again when one of them has ended${latest(decision)}.`
      : `Too many requests. Try again in ${seconds(retryAfter)}.`,
    'violated-policies': violated,
    retryAfter,
  })
}

/**
 * neverOf returns the response to a request whose cost some of these rules can never admit.
 * The rules of limiters from elsewhere are unknown.
 */
export function neverOf(cost: number | CostByRule, rules: readonly Rule[]): Refusal {
  const violated = rules.filter((rule) => rule.capacity < unitsFor(cost, rule))
  const most = violated.map(({ name, capacity }) =>
    typeof cost === 'number'
      ? `${quoted(name)} admits at most ${capacity}`
      : `it costs ${cost[name]} of ${quoted(name)}, which admits at most ${capacity}`,
  )
  const costs = typeof cost === 'number' ? `costs ${cost} and ` : ''
  const why = most.length > 0 ? `: ${most.join(', ')}` : ''
  return problem(429, 'quota-exceeded', 'Quota Exceeded', {
    detail: `This request ${costs}can never pass${why}. Waiting does not help.`,
    'violated-policies': violated.map(({ name }) => name),
  })
}

/** forbidden is the response to an address on the deny list. */
export const forbidden: Refusal = {
  status: 403,
  fields: plain,
  body: JSON.stringify({ type: 'about:blank', title: 'Forbidden', status: 403 }),
}

function problem(
  status: number,
  type: string,
  title: string,
  { retryAfter, ...members }: { retryAfter?: string; [member: string]: unknown },
): Refusal {
  const fields = retryAfter === undefined ? plain : [...plain, ['retry-after', retryAfter] as const]
  return {
    status,
    fields,
    body: JSON.stringify({ type: REGISTRY + type, title, status, ...members }),
  }
}

/** Returns when a unit is free at the latest, as the end of a sentence. */
function latest({ retryAfterMs }: Decision): string {
  return `, in ${seconds(String(Math.ceil(retryAfterMs / 1_000)))} at the latest`
}

function seconds(text: string): string {
  return text === '1' ? '1 second' : `${text} seconds`
}
