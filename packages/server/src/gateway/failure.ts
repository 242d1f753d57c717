import { type Problem, problem } from '../problem.ts'
import type { UpstreamSettings } from '../settings.ts'

/** OnFailure is called when an upstream cannot be reached, breaks off, or takes too long. */
export type OnFailure = (upstream: UpstreamSettings, error: Error & { code?: string }) => void

/** failureProblem is the response when the upstream has failed with this error. */
export function failureProblem({ code }: Error & { code?: string }): Problem {
  // Codes of Node and of undici.
  return code !== undefined && /TIMED?OUT/.test(code) ? tooLate : unreachable
}

const unreachable = problem(502, 'The upstream could not be reached, or it closed the connection.')
const tooLate = problem(504, 'The upstream did not answer in time.')
