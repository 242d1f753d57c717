import { STATUS_CODES } from 'node:http'

/** Problem is an error response in the format of RFC 9457. */
export interface Problem {
  readonly status: number
  readonly title: string
  readonly detail: string
  readonly [member: string]: unknown
}

/** problem makes an error response; its title is that of the status. */
export function problem(status: number, detail: string, members: object = {}): Problem {
  return { status, title: STATUS_CODES[status] ?? 'Error', detail, ...members }
}

/** PROBLEM_TYPE is the content type of problems. */
export const PROBLEM_TYPE = 'application/problem+json'

/** problemText is the body of an error response. */
export function problemText(problem: Problem): string {
  return JSON.stringify({ type: 'about:blank', ...problem })
}
