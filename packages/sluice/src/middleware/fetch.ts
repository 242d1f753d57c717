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

/** A handler of requests, as Next.js, Bun, Deno and Workers have them. */
type Handler<Req extends Request, Args extends unknown[]> = (
  request: Req,
  ...args: Args
) => Response | Promise<Response>

/**
 * FetchOptions are those of `rateLimit`, and how to find out where a request comes from. `Rest` is what the
 * platform passes besides a request, as far as `address` reads it.
 */
export type FetchOptions<
  Rest extends unknown[] = [],
  Rules extends AnyRules = AnyRules,
> = RateLimitOptions<Request, Response, Rules> & {
  /** The address at the other end: a `Request` does not have it, the platform knows it. */
  readonly address?: (request: Request, ...rest: Rest) => string | undefined
}

/** What a handler is called with, which is at least what `address` reads. */
type Both<Rest extends unknown[], Args extends unknown[]> = Args extends [...Rest, ...unknown[]]
  ? Args
  : Rest extends [...Args, ...unknown[]]
    ? Rest
    : never

/** Limit makes a handler limited. It is called with what that takes. */
type Limit<Rest extends unknown[]> = <Req extends Request, Args extends unknown[]>(
  handler: Handler<Req, Args>,
) => (request: Req, ...rest: Both<Rest, Args>) => Promise<Response>

const limits = sharedMap<Request, RequestLimit>('request limits')

/**
 * rateLimitOf is what was decided about the request that a handler was called with, and its permit where
 * it has one. Undefined if it was not counted.
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
      // Some platforms leave the signal out.
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

/** Node's request and response, as `@hono/node-server` passes them beside a request. */
function nodeOf(platform: unknown): Following['node'] {
  const { incoming, outgoing } = (platform ?? {}) as Partial<NonNullable<Following['node']>>
  if (!incoming?.socket || typeof outgoing?.once !== 'function') return undefined
  return { incoming, outgoing }
}

/** refusalResponse is the response to a request that was refused. */
export function refusalResponse({ fields, refusal }: Entrance, hasOrigin: boolean): Response {
  if (!refusal) throw new SluiceError('SLUICE_OPTION', 'the request was not refused.')
  const headers = new Headers()
  for (const [name, value] of [...fields, ...refusal.fields]) headers.set(name, value)
  if (hasOrigin) headers.set('access-control-expose-headers', exposed(fields))
  return new Response(refusal.body, { status: refusal.status, headers })
}

/** The response with the fields; some cannot be changed and are copied. */
function withFields(response: Response, hasOrigin: boolean, { fields }: Entrance): Response {
  // Some platforms take no response to mean that the connection is used for something else.
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
