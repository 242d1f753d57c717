import { after, type Later } from '../core/later.ts'
import type { Rule } from '../core/rule.ts'
import { finalOf, type RequestCost } from './request-cost.ts'
import type { RequestPermit } from './request-limit.ts'

/** Ending tells `finalCost` how a response has ended. */
export interface Ending {
  /**
   * Whether the client left, or the handler threw, before the response was finished. The result
   * then lowers the cost only if `finalCost` has read this flag, since the status of an unsent
   * response says nothing.
   */
  readonly aborted: boolean
}

/** FinalCost is the option `finalCost`. */
export type FinalCost<Request, Response, Cost = RequestCost> = (
  request: Request,
  response: Response,
  ending: Ending,
) => Later<Cost | undefined>

/** Spent is a permit that the guard ends with the response, and the call that it is for. */
export interface Spent {
  readonly permit: RequestPermit
  readonly cost: RequestCost
  readonly rules: readonly Rule[]
  /** Whether the response has not ended yet. */
  isOpen: boolean
}

/**
 * endPermit settles a permit by `finalCost`, and releases it, even if `finalCost` throws. An
 * asynchronous `finalCost` delays the release.
 */
export function endPermit<Request, Response>(
  { permit, cost, rules }: Spent,
  finalCost: FinalCost<Request, Response> | undefined,
  request: Request,
  response: Response,
  isWhole: boolean,
): Later<void> {
  if (!finalCost) return permit.release()
  const ending = endingOf(!isWhole)
  const settle = (final: RequestCost | undefined) => {
    if (final === undefined) return permit.release()
    return permit.settle(finalOf(final, cost, rules, isWhole || ending.isRead()))
  }
  try {
    return released(permit, after(finalCost(request, response, ending.ending), settle))
  } catch (error) {
    void permit.release()
    throw error
  }
}

/** Releases the permit also if the promise rejects. */
function released(permit: RequestPermit, done: Later<void>): Later<void> {
  if (!(done instanceof Promise)) return done
  return done.catch((error) => {
    void permit.release()
    throw error
  })
}

function endingOf(aborted: boolean): { readonly ending: Ending; isRead(): boolean } {
  let isRead = false
  const ending = {
    get aborted() {
      isRead = true
      return aborted
    },
  }
  return { ending, isRead: () => isRead }
}
