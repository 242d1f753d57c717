import { STATUS_CODES } from 'node:http'

/** Problem is an error that a client is told of, as a document of RFC 9457. */
export interface Problem {
  readonly status: number
  readonly title: string
  readonly detail: string
  readonly [member: string]: unknown
}

/** problem makes one; its title is that of the status. */
export function problem(status: number, detail: string, members: object = {}): Problem {
  return { status, title: STATUS_CODES[status] ?? 'Error', detail, ...members }
}

/** PROBLEM_TYPE is the content type of problems. */
export const PROBLEM_TYPE = 'application/problem+json'

/** problemText is the body that tells of a problem. */
export function problemText(problem: Problem): string {
  return JSON.stringify({ type: 'about:blank', ...problem })
}
