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

/** Report tells of one decision about a request. */
export interface Report<Request> {
  /** The request that was decided on. */
  readonly request: Request
  /** A text, or an object where the rules have `by`. */
  readonly key: RequestKey
  /** What the request cost. */
  readonly cost: RequestCost
  /** What was decided. */
  readonly decision: Decision
  /** Refused, and let through all the same. */
  readonly shadowed: boolean
}

/** Limited is a request that is about to be refused, and how. */
export interface Limited<Request> {
  /** The request that was refused. */
  readonly request: Request
  /** As in a `Report`; the address where that is on the deny list. */
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
 * RateLimitOptions are the options of `rateLimit`, the same for every framework. One of `limiter`, `rules`
 * and `policy` is given: a limiter, rules for one in memory, or a policy for one in memory.
 */
export type RateLimitOptions<
  Request,
  Response = unknown,
  Rules extends AnyRules = AnyRules,
> = RequestOptions<Request, Response, Rules> & Limits<Rules>

/** RequestOptions are those of `rateLimit` but for what it limits by. */
export interface RequestOptions<Request, Response = unknown, Rules extends AnyRules = AnyRules> {
  /**
   * Who is asking. Default, and where it gives nothing: the client's address. Where the rules have `by`
   * it gives an object with their fields; `address` is filled in, and `global` is no field. Without
   * other fields than these two no `key` is needed.
   */
  readonly key?: (request: Request) => Later<GivenKeyOf<Rules>>
  /**
   * The tier of the key, where it is known from the request; undefined or null leaves it to the policy. Only
   * with a policy.
   */
  readonly tier?: (request: Request) => Later<string | undefined | null>
  /**
   * What the request costs: units for all rules, or an object with units for each by its name. Both may
   * be functions of the request. Default 1.
   */
  readonly cost?: CostOf<Request, Rules>
  /**
   * What it turned out to cost, once the response has ended: the difference is charged or given back,
   * and undefined keeps the estimate, as does a name that an object leaves out. A client that goes away
   * before the response is done gets nothing back, unless `finalCost` has read `ending.aborted`.
   */
  readonly finalCost?: FinalCost<Request, Response, FinalCostOf<Rules>>
  /**
   * Gives a permit to every request that is admitted, for handlers that settle costs themselves. Default:
   * only where a rule holds units, or there is a `finalCost`.
   */
  readonly permit?: boolean
  /** Requests that are not counted at all. */
  readonly skip?: (request: Request) => Later<boolean>
  /** Addresses and blocks (`'10.0.0.0/8'`) that are never limited, or always refused with 403. */
  readonly allowList?: readonly string[]
  readonly denyList?: readonly string[]
  /**
   * Which proxies are believed when they say for whom they ask: how many there are in front of this
   * server, or their addresses and blocks. `'framework'` is for Express, Fastify, Koa and Nest: the address
   * is the `request.ip` that they find by their own setting for proxies, and as safe as that.
   * Default 0: none, the connection's own address counts.
   */
  readonly trustProxy?: number | readonly string[] | 'framework'
  /** Clients whose IPv6 addresses share so many bits are one. Default 64. */
  readonly ipv6Bits?: number
  /** Counts the questions of browsers whether they may ask. Default false. */
  readonly countPreflights?: boolean
  /** How clients are told of their limits. Default `['x', 'draft-11']`. */
  readonly headers?: readonly Dialect[]
  /**
   * What the request is counted by, to be told to the client in the fields of `'draft-11'` (`pk`):
   * only what the request itself says, and no secret. What is too long is hashed. Default: none.
   */
  readonly partitionKey?: (request: Request) => string | undefined
  /** Decides and reports, and refuses no request because of a rule. A block refuses all the same. */
  readonly shadow?: boolean
  /** May change how a request is refused; also later, by a promise. Nothing, or undefined, changes nothing. */
  readonly onLimited?: (limited: Limited<Request>) => Later<RefusalChange | undefined>
  readonly onDecision?: (report: Report<Request>) => void
  /** Called with what goes wrong where no framework can report it. Default: `console.error`. */
  readonly onError?: (error: unknown, request: Request) => void
}
