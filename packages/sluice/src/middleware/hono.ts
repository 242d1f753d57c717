import type { Context, MiddlewareHandler, Next } from 'hono'
import { systemClock } from '../core/clock.ts'
import { checkFunction } from '../core/options.ts'
import { checkGiven } from '../http/check-options.ts'
import { exposed, hasOrigin } from '../http/fields.ts'
import { dropped, followResponse } from '../http/follow-response.ts'
import { createGuard, type Entrance } from '../http/guard.ts'
import type { AnyRules, RateLimitOptions } from '../http/http-options.ts'
import type { RequestLimit } from '../http/request-limit.ts'
import { type NodeRequest, type NodeResponse, whenDone } from '../http/when-done.ts'
import { refusalResponse } from './fetch.ts'

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

declare module 'hono' {
  interface ContextVariableMap {
    /**
     * What `rateLimit` has decided, and the permit if there is one; undefined if it did not count.
     */
    rateLimit: RequestLimit | undefined
  }
}

/** HonoOptions are the options of `rateLimit`, and a function for the client's address. */
export type HonoOptions<Rules extends AnyRules = AnyRules> = RateLimitOptions<
  Context,
  Response,
  Rules
> & {
  /** Returns the address of the connection. Default: that of Node, Deno or Bun. */
  readonly address?: (context: Context) => string | undefined
}

/** rateLimit is a middleware for Hono: `app.use(rateLimit({ rules }))`. */
export function rateLimit<const Rules extends AnyRules>(
  options: HonoOptions<Rules>,
): MiddlewareHandler {
  checkGiven(options)
  const { address = platformAddress, ...others } = options
  checkFunction('rateLimit: address', address, 'of the context')
  const guard = createGuard(others as RateLimitOptions<Context, Response>)

  function act(context: Context, next: Next, entrance: Entrance): Promise<Response | undefined> {
    const { fields, refusal, limit, delayMs, spent } = entrance
    const { incoming, outgoing } = platformOf(context)
    if (spent && incoming && outgoing) {
      const responseOf = () => (context.finalized ? context.res : dropped())
      whenDone(incoming, outgoing, (isWhole) =>
        guard.finish(entrance, context, responseOf(), isWhole),
      )
    }
    const isExposed = fields.length > 0 && isFromScript(context)
    if (refusal) return Promise.resolve(refusalResponse(entrance, isExposed))
    if (limit) context.set('rateLimit', limit)
    if (outgoing && !isExposed && delayMs === 0) {
      for (let i = 0; i < fields.length; i += 1) outgoing.setHeader(fields[i][0], fields[i][1])
      return next() as Promise<undefined>
    }
    if (outgoing || !spent) return respond(context, next, entrance, isExposed)
    return follow(context, next, entrance, isExposed)
  }

  async function respond(context: Context, next: Next, entrance: Entrance, isExposed: boolean) {
    const { fields, delayMs } = entrance
    if (delayMs > 0) {
      await systemClock.sleep(delayMs)
      if (isGone(context, address(context))) return dropped()
    }
    for (const [name, value] of fields) context.header(name, value)
    await next()
    // A response that the handler created itself lacks the fields set before.
    if (fields.length > 0 && !context.res.headers.has(fields[0][0])) {
      for (const [name, value] of fields) context.header(name, value)
    }
    if (isExposed) {
      context.header('access-control-expose-headers', exposed(fields), { append: true })
    }
    return undefined
  }

  /** Follows the body to detect the end of a response on platforms that do not report it. */
  async function follow(context: Context, next: Next, entrance: Entrance, isExposed: boolean) {
    const { method, raw } = context.req
    const response = await followResponse({
      method,
      signal: raw.signal,
      respond: async () => (await respond(context, next, entrance, isExposed)) ?? context.res,
      end: (response, isWhole) => guard.finish(entrance, context, response, isWhole),
    })
    // The response of an upgrade cannot be set again.
    if (response !== context.res) context.res = response
    return undefined
  }

  /** Ends a request whose client has left meanwhile. */
  function drop(context: Context, entrance: Entrance): Response {
    const response = dropped()
    guard.finish(entrance, context, response, false)
    return response
  }

  return (context, next) => {
    const peer = address(context)
    if (isGone(context, peer)) return Promise.resolve(dropped())
    const entered = guard.enter(context, new HonoIncoming(context, peer))
    if (!(entered instanceof Promise)) return act(context, next, entered)
    return entered.then((entrance) =>
      isGone(context, peer) ? drop(context, entrance) : act(context, next, entrance),
    )
  }
}

/** The guard's view of a request. */
class HonoIncoming {
  readonly #request: Context['req']
  readonly peer: string | undefined

  constructor({ req }: Context, peer: string | undefined) {
    this.#request = req
    this.peer = peer
  }

  get method(): string {
    return this.#request.method
  }

  header(name: string): string | undefined {
    return this.#request.header(name)
  }
}

/** The data about a connection that some platforms pass to Hono. */
interface Platform {
  readonly incoming?: NodeRequest & { readonly rawHeaders?: readonly string[] }
  /** Node's response. Writing fields there is several times faster than through Hono's. */
  readonly outgoing?: NodeResponse & { setHeader(name: string, value: string): unknown }
  readonly remoteAddr?: { readonly hostname?: string }
  readonly requestIP?: (request: Request) => { readonly address: string } | null
}

function platformOf({ env }: Context): Platform {
  return (env as Platform | undefined) ?? {}
}

/**
 * Tells whether the connection of a request is closed. Avoids the request's signal on Node, which
 * is slow to create.
 */
function isGone(context: Context, peer: string | undefined): boolean {
  const socket = platformOf(context).incoming?.socket
  if (socket?.destroyed) return true
  if (peer !== undefined) return false
  // A reset TCP connection has lost only its remote address; a Unix socket has neither address.
  return socket ? socket.localAddress !== undefined : context.req.raw.signal?.aborted === true
}

/** Tells whether a request has an Origin header, as scripts of web pages send it. */
function isFromScript(context: Context): boolean {
  const rawHeaders = platformOf(context).incoming?.rawHeaders
  return rawHeaders ? hasOrigin({ rawHeaders }) : context.req.header('origin') !== undefined
}

function platformAddress(context: Context): string | undefined {
  const { incoming, remoteAddr, requestIP } = platformOf(context)
  const near = incoming?.socket?.remoteAddress ?? remoteAddr?.hostname
  return near ?? requestIP?.call(context.env, context.req.raw)?.address
}
