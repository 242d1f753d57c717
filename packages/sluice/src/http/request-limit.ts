import type { Decision } from '../core/decision.ts'
import type { CostByRule } from '../limiter/key-types.ts'
import type { AsyncPermit, Permit } from '../limiter/permit.ts'

/** RequestPermit is the permit of a request. On an asynchronous store its verbs return promises. */
export type RequestPermit = Permit<number | CostByRule> | AsyncPermit<number | CostByRule>

/**
 * RequestLimit is the data about its request that a handler can read. If a request passes several
 * `rateLimit`, it is that of the last one.
 */
export interface RequestLimit {
  /** The decision. A refusal only in shadow mode. */
  readonly decision: Decision
  /**
   * Set if a rule holds units, if there is a `finalCost`, or if the option `permit` is true.
   * It is released when the response ends; `settle` and `cancel` may end it earlier.
   */
  readonly permit: RequestPermit | undefined
}
