import type { Decision } from '../core/decision.ts'
import { after, isLater, type Later } from '../core/later.ts'
import type { Rule } from '../core/rule.ts'
import type { NoPermit } from '../limiter/permit.ts'
import { rulesOf } from '../limiter/rules-of.ts'
import type { AsyncLimiter, CallOptions, Limiter } from '../limiter/verbs.ts'
import { addressText } from './address.ts'
import { checkHttp } from './check-options.ts'
import type { AddressSource } from './client-address.ts'
import { endPermit, type FinalCost, type Spent } from './ending.ts'
import { type Field, fieldsOf, holdsAny } from './fields.ts'
import type { RateLimitOptions } from './http-options.ts'
import { changedBy } from './limited-change.ts'
import { createLocator } from './located.ts'
import { partitionOf } from './partition.ts'
import { forbidden, neverOf, type Refusal, refusalOf } from './refusal.ts'
import { costOption, isTooMuch, type RequestCost, unitsFor } from './request-cost.ts'
import { type RequestKey, requestKeys } from './request-key.ts'
import type { RequestLimit, RequestPermit } from './request-limit.ts'
import type { AnyRules } from './rule-types.ts'

/** Incoming is the guard's view of a request, the same for all frameworks. */
export interface Incoming extends AddressSource {
  readonly method: string
}

/** Entrance is the guard's result for a request. */
export interface Entrance {
  /** The header fields of the response, admitted or refused. */
  readonly fields: readonly Field[]
  /** Set if the request may not go ahead. */
  readonly refusal: Refusal | undefined
  /** The data for the handler; undefined if the request is not counted or is refused. */
  readonly limit: RequestLimit | undefined
  /** How long to delay the request until its slot, in milliseconds. */
  readonly delayMs: number
  /** Set if the adapter must call `finish` after the response. */
  readonly spent: Spent | undefined
}

/** Guard decides about requests. All adapters share it. */
export interface Guard<Request, Response> {
  readonly limiter: Limiter | AsyncLimiter
  /** Decides about a request; synchronously if the store and all options are synchronous. */
  enter(request: Request, incoming: Incoming): Entrance | Promise<Entrance>
  /**
   * Ends a request after its response: releases its holds, and settles its final cost.
   * `isWhole` is false if the client left, or the handler threw, before the response was finished.
   * Only the first call counts. Never throws.
   */
  finish(entrance: Entrance, request: Request, response: Response, isWhole: boolean): void
  /** Passes an error to `onError`. Never throws. */
  report(error: unknown, request: Request): void
}

const PASSED: Entrance = {
  fields: [],
  refusal: undefined,
  limit: undefined,
  delayMs: 0,
  spent: undefined,
}

/** Asked is the limiter call for a request, and the rules that apply. */
interface Asked<Request> {
  readonly request: Request
  readonly key: RequestKey
  readonly call: CallOptions | undefined
  readonly cost: RequestCost
  readonly rules: readonly Rule[]
}

/**
 * createGuard checks the options of `rateLimit` and creates a guard. `hasIp` tells whether the
 * framework can derive client addresses by its own proxy setting.
 */
export function createGuard<Request, Response, Rules extends AnyRules = AnyRules>(
  given: RateLimitOptions<Request, Response, Rules>,
  hasIp = false,
): Guard<Request, Response> {
  // The types of keys and costs are only for callers.
  const options = given as RateLimitOptions<Request, Response>
  const { limiter, trust, allowed, denied, ipv6Bits, headers } = checkHttp(
    options as RateLimitOptions<never, never>,
    hasIp,
  )
  const { key: keyOf, tier: tierOf, cost: units = 1, skip, shadow = false } = options
  const finalCost = options.finalCost as FinalCost<Request, Response> | undefined
  const { countPreflights = false, partitionKey, permit: isWanted = false } = options
  const { onLimited, onDecision, onError = logError } = options
  const cost = costOption(units)
  const locator = createLocator(trust, ipv6Bits, options.trustProxy !== undefined)
  const keys = requestKeys(limiter, keyOf !== undefined, locator.text)
  const rulesFor = rulesOf(limiter)
  const needsPermit = isWanted || finalCost !== undefined

  function enter(request: Request, incoming: Incoming): Later<Entrance> {
    let isAllowed = false
    if (allowed || denied) {
      const { address, isVague, others = [] } = locator.locate(incoming)
      const unwanted = denied && [address, ...others].find((each) => denied.has(each))
      if (unwanted) {
        return refuse(request, addressText(unwanted, ipv6Bits), undefined, forbidden, [])
      }
      isAllowed = !isVague && allowed?.has(address) === true
    }
    if (isAllowed || (!countPreflights && isPreflight(incoming))) return PASSED
    if (!skip) return admit(request, incoming)
    return after(skip(request), (isSkipped) => (isSkipped ? PASSED : admit(request, incoming)))
  }

  function admit(request: Request, incoming: Incoming): Later<Entrance> {
    // The same as below, without closures.
    if (!keyOf && !tierOf && typeof cost !== 'function') {
      return decide(request, keys.ofAddress(incoming), undefined, cost)
    }
    const read = (given: unknown) => (keyOf ? keys.read(given, incoming) : keys.ofAddress(incoming))
    return after(keyOf ? keyOf(request) : undefined, (given) =>
      after(tierOf ? tierOf(request) : undefined, (tier) =>
        after(typeof cost === 'function' ? cost(request) : cost, (units) =>
          decide(request, read(given), tier, units),
        ),
      ),
    )
  }

  function decide(
    request: Request,
    key: RequestKey,
    tier: string | undefined | null,
    cost: RequestCost,
  ): Later<Entrance> {
    const call = tier === undefined || tier === null ? undefined : { tier }
    const asked = { request, key, call, cost, rules: rulesFor(key as string, call) }
    return needsPermit || holdsAny(asked.rules) ? acquire(asked) : check(asked)
  }

  function check(asked: Asked<Request>): Later<Entrance> {
    let decided: Later<Decision>
    try {
      decided = limiter.check(asked.key, asked.cost, asked.call)
    } catch (error) {
      return never(asked, error)
    }
    if (!isLater(decided)) return conclude(asked, decided)
    return decided.then(
      (decision) => conclude(asked, decision),
      (error) => never(asked, error),
    )
  }

  function acquire(asked: Asked<Request>): Later<Entrance> {
    let acquired: Later<RequestPermit | NoPermit>
    try {
      acquired = limiter.tryAcquire(asked.key, asked.cost, asked.call)
    } catch (error) {
      return never(asked, error)
    }
    if (!isLater(acquired)) return concludePermit(asked, acquired)
    return acquired.then(
      (permit) => concludePermit(asked, permit),
      (error) => never(asked, error),
    )
  }

  /** Concludes with a permit. Releases it if that throws, since no response will end it. */
  function concludePermit(
    asked: Asked<Request>,
    permit: RequestPermit | NoPermit,
  ): Later<Entrance> {
    if (!permit.allowed) return conclude(asked, permit.decision)
    try {
      return conclude(asked, permit.decision, permit)
    } catch (error) {
      void permit.release()
      throw error
    }
  }

  /** Refuses a cost that can never pass; throws other errors for the framework to report. */
  function never(asked: Asked<Request>, error: unknown): Later<Entrance> {
    const { request, key, call, cost, rules } = asked
    if (!isTooMuch(error, cost, rules)) throw error
    const isLimited =
      rules.length === 0 || rules.some((rule) => rule.capacity < unitsFor(cost, rule))
    if (isLimited && !shadow) return refuse(request, key, undefined, neverOf(cost, rules), [])
    // The limiter throws before it looks for a block.
    return after<Decision, Entrance>(limiter.peek(key, 0, call), (decision) =>
      decision.source === 'blocked' ? conclude(asked, decision) : PASSED,
    )
  }

  function conclude(
    asked: Asked<Request>,
    decision: Decision,
    permit?: RequestPermit,
  ): Later<Entrance> {
    const { request, key, cost, rules } = asked
    // Shadow mode only concerns rules: a block still refuses.
    const shadowed = shadow && !decision.allowed && decision.source !== 'blocked'
    if (onDecision) watch(onDecision({ request, key, cost, decision, shadowed }), request)
    const fields = shadow ? [] : fieldsFor(asked, decision)
    if (!decision.allowed && !shadowed) {
      return refuse(request, key, decision, refusalOf(decision, rules), fields)
    }
    return {
      fields,
      refusal: undefined,
      limit: { decision, permit },
      delayMs: shadow ? 0 : decision.delayMs,
      spent: permit && { permit, cost, rules, isOpen: true },
    }
  }

  function fieldsFor({ request, rules }: Asked<Request>, decision: Decision): readonly Field[] {
    const partition = partitionKey ? partitionOf(partitionKey(request)) : ''
    return fieldsOf(headers, decision, rules, Date.now(), partition)
  }

  function refuse(
    request: Request,
    key: RequestKey,
    decision: Decision | undefined,
    refusal: Refusal,
    fields: readonly Field[],
  ): Later<Entrance> {
    if (!onLimited) return { ...PASSED, fields, refusal }
    return after<unknown, Entrance>(
      onLimited({ request, key, decision, ...refusal }),
      (change) => ({ ...PASSED, fields, refusal: changedBy(refusal, change) }),
    )
  }

  function report(error: unknown, request: Request): void {
    try {
      onError(error, request)
    } catch (another) {
      logError(another)
    }
  }

  /** Reports the rejection of a listener's promise, without waiting for it. */
  function watch(value: unknown, request: Request): void {
    if (isLater(value)) Promise.resolve(value).catch((error) => report(error, request))
  }

  return {
    limiter: limiter as Limiter | AsyncLimiter,
    enter,
    report,
    finish({ spent }, request, response, isWhole) {
      if (!spent?.isOpen) return
      spent.isOpen = false
      try {
        watch(endPermit(spent, finalCost, request, response, isWhole), request)
      } catch (error) {
        report(error, request)
      }
    },
  }
}

/** Tells whether a request is a CORS preflight. */
function isPreflight(incoming: Incoming): boolean {
  if (incoming.method !== 'OPTIONS') return false
  const asked = incoming.header('access-control-request-method')
  return asked !== undefined && incoming.header('origin') !== undefined
}

/** logError is the default of `onError`: it logs the error. */
export function logError(error: unknown): void {
  console.error('sluice: rateLimit', error)
}
