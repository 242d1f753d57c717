import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify'
import { SluiceError, shown } from '../core/errors.ts'
import { incomingOf, isGone, whenDone } from '../http/connect.ts'
import { exposed, hasOrigin } from '../http/fields.ts'
import { createGuard, type Entrance, type Guard } from '../http/guard.ts'
import type { RateLimitOptions } from '../http/http-options.ts'

export type { Limited, RateLimitOptions, Report } from '../http/http-options.ts'

type Options = RateLimitOptions<FastifyRequest, FastifyReply>

/** RouteLimit is a route's `config.rateLimit`: none, or options in place of the plugin's. */
export type RouteLimit = false | Options

declare module 'fastify' {
  interface FastifyContextConfig {
    rateLimit?: RouteLimit
  }
}

/**
 * rateLimit is a plugin for Fastify: `app.register(rateLimit({ rules }))` limits all routes, also
 * those that are not there. A route's `config: { rateLimit: { … } }` changes options for it, with
 * the same limiter unless it names another; `rateLimit: false` leaves it alone.
 */
export function rateLimit(options: Options): FastifyPluginCallback {
  checkNoApp(options)
  const base = createGuard(options)
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
      guard = createGuard(merged(options, own, base))
      guards.set(own, guard)
    }
    return guard
  }

  const plugin: FastifyPluginCallback = (app, _options, done) => {
    // A mistake is found when the route is made, not when somebody asks for it.
    app.addHook('onRoute', ({ config }) => void guardOf(config?.rateLimit))
    app.addHook('onRequest', (request, reply, next) => {
      const guard = guardOf(request.routeOptions.config.rateLimit)
      if (!guard) return next()
      const incoming = incomingOf(request.raw)
      // Neither a handler nor an error handler runs for a connection that has gone.
      if (!incoming) return drop(reply)
      let isAdmitted: boolean
      try {
        const entered = guard.enter(request, incoming)
        if (entered instanceof Promise) {
          entered
            .then((entrance) => act(guard, request, reply, entrance))
            .then(
              (isAdmitted) => isAdmitted && !isGone(request.raw, reply.raw) && next(),
              (error) => !isGone(request.raw, reply.raw) && next(error),
            )
          return
        }
        isAdmitted = act(guard, request, reply, entered)
      } catch (error) {
        return next(error as Error)
      }
      if (isAdmitted) next()
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
): boolean {
  const { fields, refusal } = entrance
  for (let i = 0; i < fields.length; i += 1) reply.header(fields[i][0], fields[i][1])
  if (fields.length > 0 && hasOrigin(request.raw)) {
    const others = reply.getHeader('access-control-expose-headers')
    reply.header('access-control-expose-headers', exposed(fields, others))
  }
  if (!refusal) {
    whenDone(guard, entrance, request, reply, reply.raw)
    return true
  }
  for (const [name, value] of refusal.fields) reply.header(name, value)
  reply.code(refusal.status).send(refusal.body)
  return false
}
