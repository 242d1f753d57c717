import { systemClock } from '../clock.ts'
import type { Decision } from '../decision.ts'
import { SluiceError } from '../errors.ts'
import { rulesOf } from '../limiter-rules.ts'
import type { AsyncLimiter, CallOptions, Limiter } from '../verbs.ts'
import { addressText } from './address.ts'
import { type AddressSource, clientAddress } from './client-address.ts'
import { type Field, fieldsOf } from './fields.ts'
import { checkHttp, type Limited, type RateLimitOptions } from './http-options.ts'
import { forbidden, neverOf, type Refusal, refusalOf } from './refusal.ts'

/** Incoming is what the guard looks at of a request, whatever the framework. */
export interface Incoming extends AddressSource {
  readonly method: string
  /** Whether an unknown address is a mistake of the set-up, not a connection that has gone. */
  readonly mustBeKnown?: boolean
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
  /** After the response: settles what it turned out to cost. Never throws. */
  settle(entrance: Entrance, request: Request, response: Response): void
}

const PASSED: Entrance = { fields: [], refusal: undefined, spent: undefined }

/** The key of clients whose connection has gone before anybody asked for their address. */
const NOBODY = 'unknown address'

export function createGuard<Request, Response>(
  options: RateLimitOptions<Request, Response>,
): Guard<Request, Response> {
  const { limiter, trust, allowed, denied, ipv6Bits, headers } = checkHttp(
    options as RateLimitOptions<never, never>,
  )
  const { key: keyOf, tier: tierOf, cost = 1, finalCost, skip, shadow = false } = options
  const { onLimited, onDecision, onError = logError } = options
  const rulesFor = rulesOf(limiter)

  function enter(request: Request, incoming: Incoming): Entrance | Promise<Entrance> {
    if (isPreflight(incoming)) return PASSED
    return after(skip ? skip(request) : false, (isSkipped) =>
      isSkipped ? PASSED : admit(request, incoming),
    )
  }

  function admit(request: Request, incoming: Incoming): Entrance | Promise<Entrance> {
    const address = allowed || denied ? clientAddress(incoming, trust) : undefined
    if (address && allowed?.has(address)) return PASSED
    if (address && denied?.has(address)) {
      return refuse(request, addressText(address, ipv6Bits), undefined, forbidden, [])
    }
    return after(keyOf ? keyOf(request) : undefined, (key) =>
      after(tierOf ? tierOf(request) : undefined, (tier) =>
        after(typeof cost === 'function' ? cost(request) : cost, (units) =>
          decide(request, key ?? addressKey(incoming), tier, units),
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
    try {
      const decided = after(limiter.check(key, cost, call), (decision) =>
        conclude(request, key, call, cost, decision),
      )
      return decided instanceof Promise
        ? decided.catch((error) => never(request, key, cost, error))
        : decided
    } catch (error) {
      return never(request, key, cost, error)
    }
  }

  /** A cost that no waiting could help is refused; other mistakes are the framework's to report. */
  function never(request: Request, key: string, cost: number, error: unknown): Entrance {
    if (!(error instanceof SluiceError && error.code === 'SLUICE_COST_EXCEEDS_CAPACITY'))
      throw error
    if (shadow) return PASSED
    return refuse(request, key, undefined, neverOf(cost, error.message), [])
  }

  function conclude(
    request: Request,
    key: string,
    call: CallOptions | undefined,
    cost: number,
    decision: Decision,
  ): Entrance | Promise<Entrance> {
    const { allowed, delayMs } = decision
    onDecision?.({ request, key, cost, decision, shadowed: shadow && !allowed })
    const spent = allowed && finalCost ? { key, cost, call } : undefined
    if (shadow) return { ...PASSED, spent }
    const fields = fieldsOf(headers, decision, rulesFor(key, call), Date.now())
    if (!allowed) return refuse(request, key, decision, refusalOf(decision), fields)
    const entrance = { fields, refusal: undefined, spent }
    return delayMs > 0 ? systemClock.sleep(delayMs).then(() => entrance) : entrance
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

  function addressKey(incoming: Incoming): string {
    const address = clientAddress(incoming, trust)
    if (address) return addressText(address, ipv6Bits)
    if (!incoming.mustBeKnown) return NOBODY
    throw new SluiceError(
      'SLUICE_OPTION',
      'rateLimit: nobody says where this request comes from. Give `key`, `address`, or `trustProxy` ' +
        'if a proxy of yours writes X-Forwarded-For.',
    )
  }

  async function settle({ spent }: Entrance, request: Request, response: Response): Promise<void> {
    if (!finalCost || !spent) return
    try {
      const final = await finalCost(request, response)
      if (final === undefined || final === spent.cost) return
      const { key, cost, call } = spent
      if (final > cost) await limiter.charge(key, final - cost, call)
      else await limiter.refund(key, cost - final, call)
    } catch (error) {
      onError(error, request)
    }
  }

  return {
    limiter,
    enter,
    settle: (entrance, request, response) => void settle(entrance, request, response),
  }
}

/** A browser asks first whether it may ask: that is not the request yet. */
function isPreflight(incoming: Incoming): boolean {
  if (incoming.method !== 'OPTIONS') return false
  return incoming.header('access-control-request-method') !== undefined
}

/** after calls `next` with a value, later if it comes later. */
function after<T, U>(value: T | Promise<T>, next: (value: T) => U | Promise<U>): U | Promise<U> {
  return value instanceof Promise ? value.then(next) : next(value)
}

function logError(error: unknown): void {
  console.error('sluice: a request could not be settled after its response', error)
}
