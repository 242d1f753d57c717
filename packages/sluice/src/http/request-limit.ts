import type { Decision } from '../core/decision.ts'
import type { CostByRule } from '../limiter/key-types.ts'
import type { AsyncPermit, Permit } from '../limiter/permit.ts'

/** RequestPermit is the permit of a request. Its verbs are promises on a store that answers later. */
export type RequestPermit = Permit<number | CostByRule> | AsyncPermit<number | CostByRule>

/**
 * RequestLimit is what a handler can read of its request. Of several `rateLimit` that a request goes
 * through it is of the last one to decide.
 */
export interface RequestLimit {
  /** Refused only in shadow mode. */
  readonly decision: Decision
  /**
   * Set where a rule holds units, where there is a `finalCost`, and where the option `permit` asks for it.
   * It is released when the response ends; `settle` and `cancel` may end it earlier.
   */
  readonly permit: RequestPermit | undefined
}
