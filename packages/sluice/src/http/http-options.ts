import type { Decision } from '../core/decision.ts'
import { SluiceError, shown } from '../core/errors.ts'
import type { Later } from '../core/later.ts'
import { checkFunction, checkOptions, checkWhole } from '../core/options.ts'
import type { Rule } from '../core/rule.ts'
import { createLimiter } from '../limiter/limiter.ts'
import type { AsyncLimiter, Limiter } from '../limiter/verbs.ts'
import { type Address, type AddressSet, parseBlock } from './address.ts'
import type { Trust } from './client-address.ts'
import type { FinalCost } from './ending.ts'
import { type Dialect, dialects, type Field } from './fields.ts'
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
  readonly request: Request
  /** A text, or an object where the rules have `by`. */
  readonly key: RequestKey
  readonly cost: RequestCost
  readonly decision: Decision
  /** Refused, and let through all the same. */
  readonly shadowed: boolean
}

/** Limited is a request that is about to be refused, and how. */
export interface Limited<Request> {
  readonly request: Request
  /** As in a `Report`; the address where that is on the deny list. */
  readonly key: RequestKey
  /** undefined for an address on the deny list, and a cost that could never pass. */
  readonly decision: Decision | undefined
  readonly status: number
  readonly fields: readonly Field[]
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

const NAMES: readonly string[] = [
  'limiter',
  'rules',
  'policy',
  'key',
  'tier',
  'cost',
  'finalCost',
  'permit',
  'skip',
  'allowList',
  'denyList',
  'trustProxy',
  'ipv6Bits',
  'countPreflights',
  'headers',
  'partitionKey',
  'shadow',
  'onLimited',
  'onDecision',
  'onError',
]

/** Checked is the options with everything looked up. */
export interface Checked {
  readonly limiter: Limiter<RequestKey> | AsyncLimiter<RequestKey>
  readonly trust: Trust
  readonly allowed: AddressSet | undefined
  readonly denied: AddressSet | undefined
  readonly ipv6Bits: number
  readonly headers: readonly Dialect[]
}

/** checkHttp checks the options of `rateLimit`; `hasIp` is as that of `createGuard`. */
export function checkHttp(options: RateLimitOptions<never, never>, hasIp: boolean): Checked {
  checkNoRule(options)
  checkOptions('rateLimit', options, NAMES)
  for (const name of [
    'key',
    'tier',
    'finalCost',
    'skip',
    'partitionKey',
    'onLimited',
    'onDecision',
    'onError',
  ] as const) {
    checkFunction(`rateLimit: ${name}`, options[name])
  }
  const { trustProxy = 0, ipv6Bits = 64, headers = ['x', 'draft-11'] } = options
  checkWhole('rateLimit: ipv6Bits', ipv6Bits, 1, 128)
  checkFlag('shadow', options.shadow)
  checkFlag('permit', options.permit)
  checkFlag('countPreflights', options.countPreflights)
  return {
    limiter: limiterOf(options),
    trust: trustOf(trustProxy, hasIp),
    allowed: options.allowList === undefined ? undefined : blocksOf('allowList', options.allowList),
    denied: options.denyList === undefined ? undefined : blocksOf('denyList', options.denyList),
    ipv6Bits,
    headers: checkHeaders(headers),
  }
}

/** A rule on its own is what many write first. */
function checkNoRule(options: unknown): void {
  const [first] = Array.isArray(options) ? options : [options]
  if (typeof (first as Partial<Rule> | undefined)?.algorithm !== 'object') return
  throw new SluiceError(
    'SLUICE_OPTION',
    'rateLimit: options must be an object, got a rule. Pass { rules: … }.',
  )
}

/** trustOf checks which proxies are trusted. */
export function trustOf(trustProxy: RateLimitOptions<never>['trustProxy'], hasIp: boolean): Trust {
  if (typeof trustProxy === 'number') {
    return checkWhole('rateLimit: trustProxy', trustProxy, 0, 64)
  }
  if (Array.isArray(trustProxy)) return blocksOf('trustProxy', trustProxy)
  if (trustProxy === 'framework' && hasIp) return trustProxy
  const why =
    trustProxy === 'framework'
      ? "got 'framework': only Express, Fastify, Koa and Nest have a setting for proxies of their own."
      : `got ${shown(trustProxy)}.`
  throw new SluiceError(
    'SLUICE_OPTION',
    'rateLimit: trustProxy must be the number of proxies in front of this server, such as 1, or a ' +
      `list of their addresses and blocks, such as ['10.0.0.0/8'], ${why}`,
  )
}

function limiterOf({ limiter, rules, policy }: RateLimitOptions<never, never>): Checked['limiter'] {
  const given = [limiter, rules, policy].filter((each) => each !== undefined)
  if (given.length !== 1) {
    throw new SluiceError(
      'SLUICE_OPTION',
      'rateLimit: give one of `limiter`, `rules` and `policy`, ' +
        `${given.length === 0 ? 'got none' : 'not several'}.`,
    )
  }
  if (limiter === undefined) return createLimiter((rules ?? policy)!) as Limiter<RequestKey>
  if (typeof limiter?.check === 'function') return limiter as Limiter<RequestKey>
  throw new SluiceError(
    'SLUICE_OPTION',
    `rateLimit: limiter must come from createLimiter(), got ${shown(limiter)}.`,
  )
}

function checkFlag(name: string, value: unknown): void {
  if (value === undefined || typeof value === 'boolean') return
  throw new SluiceError(
    'SLUICE_OPTION',
    `rateLimit: ${name} must be true or false, got ${shown(value)}.`,
  )
}

function checkHeaders(headers: readonly Dialect[]): readonly Dialect[] {
  const known = Array.isArray(headers) && headers.every((each) => dialects.includes(each))
  const drafts = known ? headers.filter((each) => each !== 'x') : []
  if (known && drafts.length < 2) return [...new Set(headers)]
  throw new SluiceError(
    'SLUICE_OPTION',
    `rateLimit: headers must be a list of ${dialects.map((each) => `'${each}'`).join(', ')}, at ` +
      `most one draft, got ${known ? drafts.join(' and ') : shown(headers)}.`,
  )
}

function blocksOf(name: string, texts: readonly string[]): AddressSet {
  if (!Array.isArray(texts)) {
    throw new SluiceError(
      'SLUICE_OPTION',
      `rateLimit: ${name} must be a list of addresses and blocks, got ${shown(texts)}.`,
    )
  }
  const blocks = texts.map((text) => {
    const block = typeof text === 'string' ? parseBlock(text) : undefined
    if (block) return block
    throw new SluiceError(
      'SLUICE_OPTION',
      `rateLimit: ${name}: ${shown(text)} is no address or block such as '10.0.0.0/8'.`,
    )
  })
  return { has: (address: Address) => blocks.some((block) => block.has(address)) }
}
