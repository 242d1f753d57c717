import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify'
import { systemClock } from '../core/clock.ts'
import { SluiceError, shown } from '../core/errors.ts'
import { isLater, type Later } from '../core/later.ts'
import { incomingOf, isGone } from '../http/connect.ts'
import { exposed, hasOrigin } from '../http/fields.ts'
import { ofFastify } from '../http/framework.ts'
import { createGuard, type Entrance, type Guard } from '../http/guard.ts'
import type { RateLimitOptions } from '../http/http-options.ts'
import type { RequestLimit } from '../http/request-limit.ts'
import { whenDone } from '../http/when-done.ts'

export type {
  Ending,
  Limited,
  RateLimitOptions,
  Report,
  RequestCost,
  RequestKey,
  RequestLimit,
  RequestPermit,
} from '../http/http-options.ts'

type Options = RateLimitOptions<FastifyRequest, FastifyReply>

/** RouteLimit is a route's `config.rateLimit`: none, or options in place of the plugin's. */
export type RouteLimit = false | Options

declare module 'fastify' {
  interface FastifyContextConfig {
    rateLimit?: RouteLimit
  }
  interface FastifyRequest {
    /** What `rateLimit` has decided, and the permit if there is one; undefined if it did not count. */
    rateLimit?: RequestLimit
  }
}

/**
 * rateLimit is a plugin for Fastify: `app.register(rateLimit({ rules }))` limits all routes, also
 * those that are not there. A route's `config: { rateLimit: { … } }` changes options for it, with
 * the same limiter unless it names another; `rateLimit: false` leaves it alone.
 */
export function rateLimit(options: Options): FastifyPluginCallback {
  checkNoApp(options)
  const base = createGuard(options, true)
  const guards = new WeakMap<object, Guard<FastifyRequest, FastifyReply>>()

  function guardOf(own: RouteLimit | undefined) {
    if (own === undefined) return base
    if (own === false) return undefined
    if (typeof own !== 'object' || own === null) {
      throw new SluiceError(
        'SLUICE_OPTION',
        `rateLimit: a route's config.rateLimit must be false or an object, got ${shown(own)}.`,
      )
    }
    let guard = guards.get(own)
    if (!guard) {
      guard = createGuard(merged(options, own, base), true)
      guards.set(own, guard)
    }
    return guard
  }

  const plugin: FastifyPluginCallback = (app, _options, done) => {
    // Requests keep their hidden class. Another plugin of ours may have done it.
    if (!app.hasRequestDecorator('rateLimit')) app.decorateRequest('rateLimit', undefined)
    // A mistake is found when the route is made, not when somebody asks for it.
    app.addHook('onRoute', ({ config }) => void guardOf(config?.rateLimit))
    app.addHook('onRequest', (request, reply, next) => {
      const guard = guardOf(request.routeOptions.config.rateLimit)
      if (!guard) return next()
      const incoming = incomingOf(request.raw, ofFastify, request)
      // Neither a handler nor an error handler runs for a connection that has gone.
      if (!incoming) return drop(reply)
      let acted: Later<boolean>
      try {
        const entered = guard.enter(request, incoming)
        acted = isLater(entered)
          ? entered.then((entrance) => act(guard, request, reply, entrance))
          : act(guard, request, reply, entered)
      } catch (error) {
        return next(error as Error)
      }
      if (!isLater(acted)) {
        if (acted) next()
        return
      }
      acted.then(
        (isAdmitted) => isAdmitted && !isGone(request.raw, reply.raw) && next(),
        (error) => !isGone(request.raw, reply.raw) && next(error),
      )
    })
    done()
  }
  return Object.assign(plugin, {
    // For the whole app, not only for what is registered inside.
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: 'sluice',
  })
}

/** Most plugins are registered by themselves, and Fastify then calls them with the app. */
function checkNoApp(options: unknown): void {
  if (typeof (options as { addHook?: unknown } | undefined)?.addHook !== 'function') return
  throw new SluiceError(
    'SLUICE_OPTION',
    'rateLimit: options must be an object, got an app. Write app.register(rateLimit({ rules: … })).',
  )
}

function drop(reply: FastifyReply): void {
  reply.hijack()
  reply.raw.destroy()
}

function merged(
  options: Options,
  own: Options,
  base: Guard<FastifyRequest, FastifyReply>,
): Options {
  const { limiter, rules, policy, ...rest } = options
  const hasOwn = own.limiter ?? own.rules ?? own.policy
  return hasOwn ? { ...rest, ...own } : { ...rest, ...own, limiter: base.limiter }
}

/** Writes what the guard says, and tells whether the request may go ahead. */
function act(
  guard: Guard<FastifyRequest, FastifyReply>,
  request: FastifyRequest,
  reply: FastifyReply,
  entrance: Entrance,
): Later<boolean> {
  const { fields, refusal, limit, delayMs, spent } = entrance
  // Before all that may throw.
  if (spent)
    whenDone(request.raw, reply.raw, (isWhole) => guard.finish(entrance, request, reply, isWhole))
  for (let i = 0; i < fields.length; i += 1) reply.header(fields[i][0], fields[i][1])
  if (fields.length > 0 && hasOrigin(request.raw)) {
    const others = reply.getHeader('access-control-expose-headers')
    reply.header('access-control-expose-headers', exposed(fields, others))
  }
  if (!refusal) {
    if (limit) request.rateLimit = limit
    return delayMs > 0 ? systemClock.sleep(delayMs).then(() => true) : true
  }
  for (const [name, value] of refusal.fields) reply.header(name, value)
  reply.code(refusal.status).send(refusal.body)
  return false
}
