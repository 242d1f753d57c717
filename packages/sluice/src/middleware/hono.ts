import type { Context, MiddlewareHandler } from 'hono'
import { exposed } from '../http/fields.ts'
import { createGuard } from '../http/guard.ts'
import type { RateLimitOptions } from '../http/http-options.ts'
import { refusalResponse } from './fetch.ts'

export type { Limited, RateLimitOptions, Report } from '../http/http-options.ts'

/** HonoOptions are those of `rateLimit`, and how to find out where a request comes from. */
export interface HonoOptions extends RateLimitOptions<Context, Response> {
  /** The address at the other end. Default: what Node, Deno or Bun say. */
  readonly address?: (context: Context) => string | undefined
}

/** rateLimit is a middleware for Hono: `app.use(rateLimit({ rules }))`. */
export function rateLimit(options: HonoOptions): MiddlewareHandler {
  const { address = platformAddress, ...others } = options
  const guard = createGuard(others)
  return async (context, next) => {
    const entrance = await guard.enter(context, {
      method: context.req.method,
      peer: address(context),
      header: (name) => context.req.header(name),
      mustBeKnown: true,
    })
    const hasOrigin = context.req.header('origin') !== undefined
    if (entrance.refusal) return refusalResponse(entrance, hasOrigin)
    await next()
    const { fields } = entrance
    for (const [name, value] of fields) context.header(name, value)
    if (fields.length > 0 && hasOrigin) {
      context.header('Access-Control-Expose-Headers', exposed(fields), { append: true })
    }
    guard.settle(entrance, context, context.res, true)
    return undefined
  }
}

/** What the platform passes to Hono about a connection, where it does. */
interface Platform {
  readonly incoming?: { readonly socket?: { readonly remoteAddress?: string } }
  readonly remoteAddr?: { readonly hostname?: string }
  readonly requestIP?: (request: Request) => { readonly address: string } | null
}

function platformAddress({ env, req }: Context): string | undefined {
  const platform = env as Platform | undefined
  return (
    platform?.incoming?.socket?.remoteAddress ??
    platform?.remoteAddr?.hostname ??
    platform?.requestIP?.(req.raw)?.address
  )
}
