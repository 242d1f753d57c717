import type { Decision } from '../core/decision.ts'
import type { Rule } from '../core/rule.ts'
import { quoted } from './announced.ts'
import { type Field, retryAfterOf, violatedOf } from './fields.ts'

/** Refusal is the response to a request that may not go ahead. */
export interface Refusal {
  readonly status: number
  readonly fields: readonly Field[]
  readonly body: string
}

/** Where the types of problems are registered. */
const REGISTRY = 'https://iana.org/assignments/http-problem-types#'

/** What every refusal has: nobody is to keep it and show it to others. */
const plain: readonly Field[] = [
  ['content-type', 'application/problem+json'],
  ['cache-control', 'no-store'],
]

/** refusalOf is the response to a refused decision. */
export function refusalOf(decision: Decision): Refusal {
  const retryAfter = retryAfterOf(decision)
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
    detail: `Too many requests. Try again in ${seconds(retryAfter)}.`,
    'violated-policies': violated,
    retryAfter,
  })
}

/**
 * neverOf is the response to a request that costs more than some of these rules could ever admit.
 * No policy is known of a limiter that is not ours.
 */
export function neverOf(cost: number, rules: readonly Rule[]): Refusal {
  const violated = rules.filter(({ capacity }) => capacity < cost)
  const most = violated.map(({ name, capacity }) => `${quoted(name)} admits at most ${capacity}`)
  return problem(429, 'quota-exceeded', 'Quota Exceeded', {
    detail: `This request costs ${cost} and can never pass${most.length > 0 ? ': ' : ''}${most.join(', ')}. Waiting does not help.`,
    'violated-policies': violated.map(({ name }) => name),
  })
}

/** forbidden is the response to an address that is not wanted at all. */
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

function seconds(text: string): string {
  return text === '1' ? '1 second' : `${text} seconds`
}
