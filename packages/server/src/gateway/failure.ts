import { type Problem, problem } from '../problem.ts'
import type { UpstreamSettings } from '../settings.ts'

/** OnFailure is told that an upstream could not be reached, broke off, or took too long. */
export type OnFailure = (upstream: UpstreamSettings, error: Error & { code?: string }) => void

/** failureProblem is what a client is told when its upstream has failed with this error. */
export function failureProblem({ code }: Error & { code?: string }): Problem {
  // As Node and undici spell it.
  return code !== undefined && /TIMED?OUT/.test(code) ? tooLate : unreachable
}

const unreachable = problem(502, 'The upstream could not be reached, or broke off.')
const tooLate = problem(504, 'The upstream did not answer in time.')
