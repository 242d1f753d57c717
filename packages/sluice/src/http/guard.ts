import { systemClock } from '../core/clock.ts'
import { MOST_UNITS } from '../core/cost.ts'
import type { Decision } from '../core/decision.ts'
import { SluiceError, shown } from '../core/errors.ts'
import { after, isLater } from '../core/later.ts'
import { usableKey } from '../core/usable-key.ts'
import { rulesOf } from '../limiter/rules-of.ts'
import type { AsyncLimiter, CallOptions, Limiter } from '../limiter/verbs.ts'
import { type Address, addressText } from './address.ts'
import { type AddressSource, clientAddress, type Found } from './client-address.ts'
import { type Field, fieldsOf } from './fields.ts'
import { checkHttp, type Limited, type RateLimitOptions } from './http-options.ts'
import { partitionOf } from './partition.ts'
import { forbidden, neverOf, type Refusal, refusalOf } from './refusal.ts'

/** Incoming is what the guard looks at of a request, whatever the framework. */
export interface Incoming extends AddressSource {
  readonly method: string
}

/** Entrance is what becomes of a request. */
export interface Entrance {
  /** What goes into the response, refused or not. */
  readonly fields: readonly Field[]
  /** Set if the request may not go ahead. */
  readonly refusal: Refusal | undefined
  /** What was spent, if it is to be settled after the response. */
  readonly spent: Spent | undefined
}

interface Spent {
  readonly key: string
  readonly cost: number
  readonly call: CallOptions | undefined
}

/** Guard decides about requests: the spine that all adapters share. */
export interface Guard<Request, Response> {
  readonly limiter: Limiter | AsyncLimiter
  /** At once where everything that it needs answers at once. */
  enter(request: Request, incoming: Incoming): Entrance | Promise<Entrance>
  /**
   * After the response: settles what it turned out to cost. If the client went away before the
   * handler had done with it (`isWhole` is false), nothing is given back. Never throws.
   */
  settle(entrance: Entrance, request: Request, response: Response, isWhole: boolean): void
  /** Tells `onError`. Never throws. */
  report(error: unknown, request: Request): void
}

const PASSED: Entrance = { fields: [], refusal: undefined, spent: undefined }

/** How many keys of addresses are kept at hand. */
const MOST_KEYS = 10_000

export function createGuard<Request, Response>(
  options: RateLimitOptions<Request, Response>,
): Guard<Request, Response> {
  const { limiter, trust, allowed, denied, ipv6Bits, headers } = checkHttp(
    options as RateLimitOptions<never, never>,
  )
  const { key: keyOf, tier: tierOf, cost = 1, finalCost, skip, shadow = false } = options
  const { countPreflights = false, partitionKey } = options
  const { onLimited, onDecision, onError = logError } = options
  const rulesFor = rulesOf(limiter)
  const keys = new Map<string, string>()

  function enter(request: Request, incoming: Incoming): Entrance | Promise<Entrance> {
    let isAllowed = false
    if (allowed || denied) {
      const { address, isVague, others = [] } = found(incoming)
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

  function admit(request: Request, incoming: Incoming): Entrance | Promise<Entrance> {
    // The same as below, without closures.
    if (!keyOf && !tierOf && typeof cost === 'number') {
      return decide(request, addressKey(incoming), undefined, cost)
    }
    return after(keyOf ? keyOf(request) : undefined, (key) =>
      after(tierOf ? tierOf(request) : undefined, (tier) =>
        after(typeof cost === 'function' ? cost(request) : cost, (units) =>
          decide(request, keyFor(key, incoming), tier, units),
        ),
      ),
    )
  }

  function decide(
    request: Request,
    key: string,
    tier: string | undefined,
    cost: number,
  ): Entrance | Promise<Entrance> {
    const call = tier === undefined ? undefined : { tier }
    let decided: Decision | Promise<Decision>
    try {
      decided = limiter.check(key, cost, call)
    } catch (error) {
      return never(request, key, call, cost, error)
    }
    if (!isLater(decided)) return conclude(request, key, call, cost, decided)
    return decided.then(
      (decision) => conclude(request, key, call, cost, decision),
      (error) => never(request, key, call, cost, error),
    )
  }

  /** A cost that no waiting could help is refused; other mistakes are the framework's to report. */
  function never(
    request: Request,
    key: string,
    call: CallOptions | undefined,
    cost: number,
    error: unknown,
  ): Entrance | Promise<Entrance> {
    if (!isTooMuch(error, cost)) throw error
    const rules = rulesFor(key, call)
    const isLimited = rules.length === 0 || rules.some(({ capacity }) => capacity < cost)
    if (isLimited && !shadow) return refuse(request, key, undefined, neverOf(cost, rules), [])
    // The limiter throws before it looks for a block.
    return after(limiter.peek(key, 0, call), (decision) =>
      decision.source === 'blocked' ? conclude(request, key, call, cost, decision) : PASSED,
    )
  }

  function conclude(
    request: Request,
    key: string,
    call: CallOptions | undefined,
    cost: number,
    decision: Decision,
  ): Entrance | Promise<Entrance> {
    const { allowed, delayMs } = decision
    // Shadow mode is about rules; a block refuses all the same.
    const isShadow = shadow && decision.source !== 'blocked'
    const shadowed = isShadow && !allowed
    if (onDecision) watch(onDecision({ request, key, cost, decision, shadowed }), request)
    const spent = allowed && finalCost ? { key, cost, call } : undefined
    if (isShadow) return { ...PASSED, spent }
    const fields = shadow ? [] : fieldsFor(request, key, call, decision)
    if (!allowed) return refuse(request, key, decision, refusalOf(decision), fields)
    const entrance = { fields, refusal: undefined, spent }
    return delayMs > 0 ? systemClock.sleep(delayMs).then(() => entrance) : entrance
  }

  function fieldsFor(
    request: Request,
    key: string,
    call: CallOptions | undefined,
    decision: Decision,
  ): readonly Field[] {
    const partition = partitionKey ? partitionOf(partitionKey(request)) : ''
    return fieldsOf(headers, decision, rulesFor(key, call), Date.now(), partition)
  }

  function refuse(
    request: Request,
    key: string,
    decision: Decision | undefined,
    refusal: Refusal,
    fields: readonly Field[],
  ): Entrance {
    const limited: Limited<Request> = { request, key, decision, ...refusal }
    const change = onLimited?.(limited)
    if (!change) return { fields, refusal, spent: undefined }
    const { status = refusal.status, body = refusal.body, fields: others = [] } = change
    const names = new Set(others.map(([name]) => name.toLowerCase()))
    const kept = refusal.fields.filter(([name]) => !names.has(name.toLowerCase()))
    return { fields, refusal: { status, body, fields: [...kept, ...others] }, spent: undefined }
  }

  function keyFor(key: unknown, incoming: Incoming): string {
    return key === undefined || key === null ? addressKey(incoming) : usableKey(key)
  }

  function addressKey(incoming: Incoming): string {
    const { peer } = incoming
    const isPeer = trust === 0 && typeof peer === 'string'
    const known = isPeer ? keys.get(peer) : undefined
    if (known !== undefined) return known
    const key = addressText(found(incoming).address, ipv6Bits)
    if (isPeer) {
      if (keys.size >= MOST_KEYS) keys.clear()
      keys.set(peer, key)
    }
    return key
  }

  function found(incoming: Incoming): Located {
    return located(clientAddress(incoming, trust))
  }

  async function settle(spent: Spent, request: Request, response: Response, isWhole: boolean) {
    const final = await finalCost!(request, response)
    const { key, cost, call } = spent
    if (final === undefined || final === cost) return
    if (!Number.isInteger(final) || final < 0) {
      throw new SluiceError(
        'SLUICE_COST',
        `rateLimit: finalCost must be a whole number from 0 up, got ${shown(final)}.`,
      )
    }
    if (final > cost) await limiter.charge(key, Math.min(final - cost, MOST_UNITS), call)
    else if (isWhole) await limiter.refund(key, cost - final, call)
  }

  function report(error: unknown, request: Request): void {
    try {
      onError(error, request)
    } catch (another) {
      logError(another)
    }
  }

  /** What a listener promises and does not keep is reported, and nobody waits for it. */
  function watch(value: unknown, request: Request): void {
    if (isLater(value)) Promise.resolve(value).catch((error) => report(error, request))
  }

  return {
    limiter,
    enter,
    report,
    settle({ spent }, request, response, isWhole) {
      if (spent) watch(settle(spent, request, response, isWhole), request)
    },
  }
}

/** Located is a client whose address is known. */
type Located = Found & { readonly address: Address }

/**
 * located is a client whose address is known, and throws without one: no decision is made for it.
 * Adapters drop what comes on a connection that has gone, so it is the set-up that tells none.
 */
export function located(client: Found): Located {
  const { address } = client
  if (address) return { ...client, address }
  throw new SluiceError(
    'SLUICE_OPTION',
    'rateLimit: the address of this request is not known. Give `key`, `address`, or `trustProxy` ' +
      'if a proxy of yours writes X-Forwarded-For.',
  )
}

/**
 * isTooMuch tells a cost that no waiting could help from a mistake: also one that is above what a
 * limiter takes, such as the length of a body that a client announces.
 */
function isTooMuch(error: unknown, cost: number): boolean {
  if (!(error instanceof SluiceError)) return false
  if (error.code === 'SLUICE_COST') return Number.isInteger(cost) && cost > MOST_UNITS
  return error.code === 'SLUICE_COST_EXCEEDS_CAPACITY'
}

/** A browser asks first whether it may ask: that is not the request yet. */
function isPreflight(incoming: Incoming): boolean {
  if (incoming.method !== 'OPTIONS') return false
  const asked = incoming.header('access-control-request-method')
  return asked !== undefined && incoming.header('origin') !== undefined
}

/** logError is what becomes of errors that nobody asks for. */
export function logError(error: unknown): void {
  console.error('sluice: rateLimit', error)
}
