import { systemClock } from '../core/clock.ts'
import { SluiceError, shown } from '../core/errors.ts'
import { checkFunction } from '../core/options.ts'
import { sharedMap } from '../core/shared-map.ts'
import { checkGiven } from '../http/check-options.ts'
import { exposed } from '../http/fields.ts'
import { dropped, type Following, followResponse } from '../http/follow-response.ts'
import { createGuard, type Entrance } from '../http/guard.ts'
import type { AnyRules, RateLimitOptions } from '../http/http-options.ts'
import type { RequestLimit } from '../http/request-limit.ts'

export type {
  Ending,
  Limited,
  RateLimitOptions,
  RefusalChange,
  Report,
  RequestCost,
  RequestKey,
  RequestLimit,
  RequestPermit,
} from '../http/http-options.ts'

/** A request handler, as in Next.js, Bun, Deno and Workers. */
type Handler<Req extends Request, Args extends unknown[]> = (
  request: Req,
  ...args: Args
) => Response | Promise<Response>

/**
 * FetchOptions are the options of `rateLimit`, and a function for the client's address. `Rest` is
 * what the platform passes besides a request, as far as `address` reads it.
 */
export type FetchOptions<
  Rest extends unknown[] = [],
  Rules extends AnyRules = AnyRules,
> = RateLimitOptions<Request, Response, Rules> & {
  /** Returns the address of the connection, which the platform knows and a `Request` lacks. */
  readonly address?: (request: Request, ...rest: Rest) => string | undefined
}

/** The parameters of a limited handler: at least those that `address` reads. */
type Both<Rest extends unknown[], Args extends unknown[]> = Args extends [...Rest, ...unknown[]]
  ? Args
  : Rest extends [...Args, ...unknown[]]
    ? Rest
    : never

/** Limit wraps a handler in one with the same parameters. */
type Limit<Rest extends unknown[]> = <Req extends Request, Args extends unknown[]>(
  handler: Handler<Req, Args>,
) => (request: Req, ...rest: Both<Rest, Args>) => Promise<Response>

const limits = sharedMap<Request, RequestLimit>('request limits')

/**
 * rateLimitOf returns the decision about the request that a handler was called with, and its permit
 * if it has one. undefined if it was not counted.
 */
export function rateLimitOf(request: Request): RequestLimit | undefined {
  return limits.get(request)
}

/** rateLimit wraps a handler: `export const GET = rateLimit({ rules, key })(handler)`. */
export function rateLimit<Rest extends unknown[] = [], const Rules extends AnyRules = AnyRules>(
  options: FetchOptions<Rest, Rules>,
): Limit<Rest> {
  checkGiven(options, ' Write rateLimit({ rules, key })(handler).')
  const { address, ...others } = options
  checkFunction('rateLimit: address', address, 'of the request')
  const guard = createGuard(others as RateLimitOptions<Request, Response>)
  return (handler) => {
    if (typeof handler !== 'function') throw noHandler(handler)
    return async (request, ...rest) => {
      // Some platforms have no signal.
      const { signal } = request as { readonly signal?: AbortSignal }
      if (signal?.aborted) return dropped()
      const entrance = await guard.enter(request, {
        method: request.method,
        peer: address?.(request, ...(rest as unknown as Rest)),
        header: (name) => request.headers.get(name) ?? undefined,
      })
      const { refusal, limit, delayMs, spent } = entrance
      const hasOrigin = request.headers.has('origin')
      if (refusal) return refusalResponse(entrance, hasOrigin)
      if (limit) limits.set(request, limit)
      const respond = async () => {
        if (delayMs > 0) await systemClock.sleep(delayMs)
        if (signal?.aborted) return dropped()
        return withFields(await handler(request, ...(rest as never)), hasOrigin, entrance)
      }
      if (!spent) return respond()
      const end = (response: Response, isWhole: boolean) =>
        guard.finish(entrance, request, response, isWhole)
      const node = nodeOf(rest[0])
      return followResponse({ method: request.method, node, signal, respond, end })
    }
  }
}

function noHandler(given: unknown): SluiceError {
  return new SluiceError(
    'SLUICE_OPTION',
    `rateLimit: the handler must be a function, got ${given instanceof Request ? 'a request' : shown(given)}. ` +
      'rateLimit(options) takes a handler and gives the limited one: ' +
      'export const GET = rateLimit({ rules, key })(handler).',
  )
}

/** Returns Node's request and response if `@hono/node-server` passes them with a request. */
function nodeOf(platform: unknown): Following['node'] {
  const { incoming, outgoing } = (platform ?? {}) as Partial<NonNullable<Following['node']>>
  if (!incoming?.socket || typeof outgoing?.once !== 'function') return undefined
  return { incoming, outgoing }
}

/** refusalResponse creates the response to a refused request. */
export function refusalResponse({ fields, refusal }: Entrance, hasOrigin: boolean): Response {
  if (!refusal) throw new SluiceError('SLUICE_OPTION', 'the request was not refused.')
  const headers = new Headers()
  for (const [name, value] of [...fields, ...refusal.fields]) headers.set(name, value)
  if (hasOrigin) headers.set('access-control-expose-headers', exposed(fields))
  return new Response(refusal.body, { status: refusal.status, headers })
}

/** Returns the response with the fields. Copies immutable responses. */
function withFields(response: Response, hasOrigin: boolean, { fields }: Entrance): Response {
  // On some platforms no response means that the connection was upgraded.
  if (fields.length === 0 || !(response instanceof Response)) return response
  const changed = isOpen(response) ? response : new Response(response.body, response)
  for (const [name, value] of fields) changed.headers.set(name, value)
  if (hasOrigin) changed.headers.append('access-control-expose-headers', exposed(fields))
  return changed
}

function isOpen({ headers }: Response): boolean {
  try {
    headers.delete('x-sluice-none')
    return true
  } catch {
    return false
  }
}
