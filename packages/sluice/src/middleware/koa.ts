import type { Context, Middleware } from 'koa'
import { exposed, NodeIncoming } from '../http/connect.ts'
import { createGuard } from '../http/guard.ts'
import type { RateLimitOptions } from '../http/http-options.ts'

export type { Limited, RateLimitOptions, Report } from '../http/http-options.ts'

/** rateLimit is a middleware for Koa: `app.use(rateLimit({ rules }))`. */
export function rateLimit(options: RateLimitOptions<Context, Context>): Middleware {
  const guard = createGuard(options)
  return async (context, next) => {
    const entrance = await guard.enter(context, new NodeIncoming(context.req))
    const { fields, refusal } = entrance
    for (const [name, value] of [...fields, ...(refusal?.fields ?? [])]) context.set(name, value)
    if (context.get('origin') !== '' && fields.length > 0) {
      context.append('Access-Control-Expose-Headers', exposed(fields))
    }
    if (refusal) {
      context.status = refusal.status
      context.res.statusCode = refusal.status
      context.body = refusal.body
      // Setting a body made its type plain text.
      for (const [name, value] of refusal.fields) context.set(name, value)
      return
    }
    if (entrance.spent) {
      context.res.once('close', () => guard.settle(entrance, context, context))
    }
    await next()
  }
}
