import type { Decision } from '../core/decision.ts'
import type { Later } from '../core/later.ts'
import type { FinalCost } from './ending.ts'
import type { Dialect, Field } from './fields.ts'
import type { RefusalChange } from './limited-change.ts'
import type { RequestCost } from './request-cost.ts'
import type { RequestKey } from './request-key.ts'
import type { AnyRules, CostOf, FinalCostOf, GivenKeyOf, Limits } from './rule-types.ts'

export type { Ending } from './ending.ts'
export type { RefusalChange } from './limited-change.ts'
export type { RequestCost } from './request-cost.ts'
export type { RequestKey } from './request-key.ts'
export type { RequestLimit, RequestPermit } from './request-limit.ts'
export type { AnyRules } from './rule-types.ts'

/** Report describes one decision about a request. */
export interface Report<Request> {
  /** The request that was decided on. */
  readonly request: Request
  /** A string, or an object if the rules have `by`. */
  readonly key: RequestKey
  /** What the request cost. */
  readonly cost: RequestCost
  /** The decision. */
  readonly decision: Decision
  /** Whether shadow mode admitted a refused request. */
  readonly shadowed: boolean
}

/** Limited is a request that is about to be refused, and its response. */
export interface Limited<Request> {
  /** The request that was refused. */
  readonly request: Request
  /** As in a `Report`; for an address on the deny list, that address. */
  readonly key: RequestKey
  /** undefined for an address on the deny list, and a cost that could never pass. */
  readonly decision: Decision | undefined
  /** The status code that is sent if `onLimited` gives no other. */
  readonly status: number
  /** The header fields of the response, by name. */
  readonly fields: readonly Field[]
  /** The body that is sent if `onLimited` gives no other. */
  readonly body: string
}

/**
 * RateLimitOptions are the options of `rateLimit`, the same for every framework. One of `limiter`,
 * `rules` and `policy` is given: a limiter, rules for one in memory, or a policy for one in memory.
 */
export type RateLimitOptions<
  Request,
  Response = unknown,
  Rules extends AnyRules = AnyRules,
> = RequestOptions<Request, Response, Rules> & Limits<Rules>

/** RequestOptions are the options of `rateLimit` except `limiter`, `rules` and `policy`. */
export interface RequestOptions<Request, Response = unknown, Rules extends AnyRules = AnyRules> {
  /**
   * Returns the key of a request. Default, also for an undefined result: the client's address. If
   * the rules have `by`, it returns an object with their fields; `address` is filled in, and
   * `global` is not a field. If the rules have only these two, no `key` is needed.
   */
  readonly key?: (request: Request) => Later<GivenKeyOf<Rules>>
  /**
   * Returns the tier of the key, if the request tells it; undefined or null leaves it to the policy.
   * Only with a policy.
   */
  readonly tier?: (request: Request) => Later<string | undefined | null>
  /**
   * The cost of the request: units for all rules, or an object with units per rule name. Both may
   * be functions of the request. Default 1.
   */
  readonly cost?: CostOf<Request, Rules>
  /**
   * Returns the final cost after the response has ended: the difference to `cost` is charged or
   * refunded. undefined, or a missing rule name, keeps the estimate. A client that leaves before the
   * response is finished gets no refund, unless `finalCost` has read `ending.aborted`.
   */
  readonly finalCost?: FinalCost<Request, Response, FinalCostOf<Rules>>
  /**
   * Gives every admitted request a permit, for handlers that settle costs themselves. Default: only
   * if a rule holds units, or there is a `finalCost`.
   */
  readonly permit?: boolean
  /** Returns true for requests that are not counted. */
  readonly skip?: (request: Request) => Later<boolean>
  /** Addresses and blocks (`'10.0.0.0/8'`) that are never limited, or always refused with 403. */
  readonly allowList?: readonly string[]
  readonly denyList?: readonly string[]
  /**
   * The proxies whose forwarding headers are trusted: how many there are in front of this server,
   * or their addresses and blocks. `'framework'`, for Express, Fastify, Koa and Nest, uses the
   * `request.ip` that they derive by their own proxy setting, and is as safe as that setting.
   * Default 0: none, the address of the connection counts.
   */
  readonly trustProxy?: number | readonly string[] | 'framework'
  /** IPv6 addresses that share this many leading bits count as one client. Default 64. */
  readonly ipv6Bits?: number
  /** Counts CORS preflight requests. Default false. */
  readonly countPreflights?: boolean
  /** The formats of rate-limit headers. Default `['x', 'draft-11']`. */
  readonly headers?: readonly Dialect[]
  /**
   * Returns the partition key that clients see in the fields of `'draft-11'` (`pk`): only data of
   * the request itself, and no secret. Over-long values are hashed. Default: none.
   */
  readonly partitionKey?: (request: Request) => string | undefined
  /**
   * Shadow mode: decides and reports, but refuses no request because of a rule. Blocks still
   * refuse.
   */
  readonly shadow?: boolean
  /** May change the response of a refused request, also by a promise. undefined changes nothing. */
  readonly onLimited?: (limited: Limited<Request>) => Later<RefusalChange | undefined>
  readonly onDecision?: (report: Report<Request>) => void
  /** Called with errors that no framework can report. Default: `console.error`. */
  readonly onError?: (error: unknown, request: Request) => void
}
