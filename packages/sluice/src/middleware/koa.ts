import type { Context, Middleware } from 'koa'
import { systemClock } from '../core/clock.ts'
import { incomingOf, isGone } from '../http/connect.ts'
import { exposed, type Field, hasOrigin } from '../http/fields.ts'
import { ofKoa } from '../http/framework.ts'
import { createGuard } from '../http/guard.ts'
import type { AnyRules, RateLimitOptions } from '../http/http-options.ts'
import type { RequestLimit } from '../http/request-limit.ts'
import { whenDone } from '../http/when-done.ts'

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

declare module 'koa' {
  interface DefaultState {
    /**
     * What `rateLimit` has decided, and the permit if there is one; undefined if it did not count.
     */
    rateLimit?: RequestLimit
  }
}

/** rateLimit is a middleware for Koa: `app.use(rateLimit({ rules }))`. */
export function rateLimit<const Rules extends AnyRules>(
  options: RateLimitOptions<Context, Context, Rules>,
): Middleware {
  const guard = createGuard(options, true)
  return async (context, next) => {
    const incoming = incomingOf(context.req, ofKoa, context)
    if (!incoming) return drop(context)
    const entrance = await guard.enter(context, incoming)
    const { fields, refusal, limit, delayMs, spent } = entrance
    // Before anything that may throw.
    if (spent) {
      whenDone(context.req, context.res, (isWhole) =>
        guard.finish(entrance, context, context, isWhole),
      )
    }
    for (const [name, value] of [...fields, ...(refusal?.fields ?? [])]) context.set(name, value)
    if (fields.length > 0 && hasOrigin(context.req)) {
      context.append('access-control-expose-headers', exposed(fields))
    }
    if (refusal) {
      context.status = refusal.status
      context.res.statusCode = refusal.status
      context.body = refusal.body
      // Set fields after the body, which sets its type to plain text.
      for (const [name, value] of refusal.fields) context.set(name, value)
      return
    }
    if (limit) context.state.rateLimit = limit
    if (delayMs > 0) await systemClock.sleep(delayMs)
    if (isGone(context.req, context.res)) return
    try {
      await next()
    } catch (error) {
      throw withFields(error, fields)
    }
  }
}

/** Makes Koa send no response to a closed connection. */
function drop(context: Context): void {
  context.respond = false
  context.res.destroy()
}

/**
 * Adds fields to an error: when a handler throws, Koa clears all fields except those of the error.
 */
function withFields(error: unknown, fields: readonly Field[]): unknown {
  if (!(error instanceof Error) || fields.length === 0) return error
  const { headers } = error as { headers?: object }
  return Object.assign(error, { headers: { ...Object.fromEntries(fields), ...headers } })
}
