import { SluiceError, shown } from '../core/errors.ts'
import { checkOptions } from '../core/options.ts'
import type { Call } from './gate.ts'
import type { CostByRule } from './key-types.ts'
import type { CallOptions, LimitRequest } from './verbs.ts'

type Begin = (key: unknown, cost: unknown, options: CallOptions | undefined) => Call

/** A request as given, and as checked. */
interface CheckedRequest {
  readonly call: Call
  readonly key: string
  readonly cost: number | CostByRule
}

const REQUEST_OPTIONS = ['key', 'cost', 'tier']

/**
 * checkRequests checks all requests of a `checkMany` before anything is spent. It reads each once,
 * so that an object with getters cannot change between check and spend.
 */
export function checkRequests(
  requests: readonly LimitRequest<string, number | CostByRule>[],
  begin: Begin,
): CheckedRequest[] {
  if (!Array.isArray(requests)) {
    throw new SluiceError(
      'SLUICE_OPTION',
      `checkMany takes an array of { key, cost }, got ${shown(requests)}.`,
    )
  }
  const checked: CheckedRequest[] = []
  for (let i = 0; i < requests.length; i += 1) {
    try {
      checked.push(checkRequest(requests[i], begin))
    } catch (error) {
      throw ofRequest(i, error)
    }
  }
  return checked
}

function checkRequest(
  request: LimitRequest<string, number | CostByRule>,
  begin: Begin,
): CheckedRequest {
  checkOptions('a request', request, REQUEST_OPTIONS)
  const { key, cost = 1, tier } = request
  return { call: begin(key, cost, tier === undefined ? undefined : { tier }), key, cost }
}

/** Returns the error with the number of the request. */
function ofRequest(index: number, error: unknown): unknown {
  if (!SluiceError.is(error)) return error
  return new SluiceError(error.code, `checkMany, request ${index}: ${error.message}`, {
    cause: error,
  })
}
