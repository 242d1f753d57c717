import type {
  FastifyPluginCallback,
  FastifyReply,
  FastifyRequest,
  onRequestHookHandler,
  preParsingHookHandler,
  RouteOptions,
} from 'fastify'
import { SluiceError, shown } from '../core/errors.ts'
import { checkGiven } from '../http/check-options.ts'
import { createGuard, type Guard } from '../http/guard.ts'
import type { AnyRules, RateLimitOptions, RequestOptions } from '../http/http-options.ts'
import type { RequestLimit } from '../http/request-limit.ts'
import { beforeBody } from './fastify/before-body.ts'
import { enter, type Next } from './fastify/enter.ts'

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

/** Hook is when a request is counted. `request.body` is there from `'preValidation'` on. */
export type Hook = 'onRequest' | 'preParsing' | 'preValidation' | 'preHandler'

const HOOKS: readonly Hook[] = ['onRequest', 'preParsing', 'preValidation', 'preHandler']

interface HookOption {
  /**
   * The hook of Fastify that requests are counted in. Default `'onRequest'`, before anything is read of
   * them. A `key` from `request.body` needs `'preValidation'` or `'preHandler'`.
   */
  readonly hook?: Hook
}

/** FastifyOptions are those of `rateLimit`, and when it runs. */
export type FastifyOptions<Rules extends AnyRules = AnyRules> = HookOption &
  RateLimitOptions<FastifyRequest, FastifyReply, Rules>

/** RouteLimit is a route's `config.rateLimit`: none, or options in place of the plugin's. */
export type RouteLimit =
  | false
  | FastifyOptions
  | (HookOption & RequestOptions<FastifyRequest, FastifyReply> & NoLimits)

/** A route without limits of its own has those of the plugin. */
type NoLimits = {
  readonly limiter?: undefined
  readonly rules?: undefined
  readonly policy?: undefined
}

declare module 'fastify' {
  interface FastifyContextConfig {
    rateLimit?: RouteLimit
  }
  interface FastifyRequest {
    /** What `rateLimit` has decided, and the permit if there is one; undefined if it did not count. */
    rateLimit?: RequestLimit
  }
}

/** Counted is how a route's requests are counted. */
interface Counted {
  readonly hook: Hook
  readonly guard: Guard<FastifyRequest, FastifyReply>
}

/**
 * rateLimit is a plugin for Fastify: `app.register(rateLimit({ rules }))` limits all routes, also
 * those that are not there. A route's `config: { rateLimit: { … } }` changes options for it, with
 * the same limiter unless it names another; `rateLimit: false` leaves it alone.
 */
export function rateLimit<const Rules extends AnyRules>(
  given: FastifyOptions<Rules>,
): FastifyPluginCallback {
  const options = given as FastifyOptions
  checkNoApp(options)
  checkGiven(options)
  const base = countedBy(options)
  const ofRoutes = new WeakMap<object, Counted>()
  /** The guards of routes that have a hook of their own. */
  const placed = new WeakSet<object>()

  function countedOf(own: RouteLimit | undefined): Counted | undefined {
    if (own === undefined) return base
    if (own === false) return undefined
    if (typeof own !== 'object' || own === null) {
      throw new SluiceError(
        'SLUICE_OPTION',
        `rateLimit: a route's config.rateLimit must be false or an object, got ${shown(own)}.`,
      )
    }
    let counted = ofRoutes.get(own)
    if (!counted) {
      counted = countedBy(merged(options, own, base.guard))
      ofRoutes.set(own, counted)
    }
    return counted
  }

  function run(hook: Hook, request: FastifyRequest, reply: FastifyReply, next: Next): void {
    const counted = countedOf(request.routeOptions.config.rateLimit)
    if (counted?.hook === hook) enter(counted.guard, request, reply, next)
    else if (counted && !placed.has(counted)) next(tooLate(counted.hook))
    else next()
  }

  const handlers = Object.fromEntries(HOOKS.map((hook) => [hook, hookOf(hook, run)]))

  const plugin: FastifyPluginCallback = (app, _options, done) => {
    // Requests keep their hidden class. Another plugin of ours may have done it.
    if (!app.hasRequestDecorator('rateLimit')) app.decorateRequest('rateLimit', undefined)
    app.addHook('onRoute', (route) => {
      // A mistake is found when the route is made, not when somebody asks for it.
      const counted = countedOf(route.config?.rateLimit)
      if (!counted || counted.hook === base.hook) return
      append(route, counted.hook, handlers[counted.hook])
      placed.add(counted)
    })
    app.addHook(base.hook as 'onRequest', handlers[base.hook])
    done()
  }
  return Object.assign(plugin, {
    // For the whole app, not only for what is registered inside.
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: 'sluice',
  })
}

type Run = (hook: Hook, request: FastifyRequest, reply: FastifyReply, next: Next) => void

/** countedBy checks options, and makes their guard. */
function countedBy({ hook = 'onRequest', ...options }: FastifyOptions): Counted {
  if (!HOOKS.includes(hook)) {
    const hooks = HOOKS.map((each) => `'${each}'`).join(', ')
    throw new SluiceError(
      'SLUICE_OPTION',
      `rateLimit: hook must be one of ${hooks}, got ${shown(hook)}.`,
    )
  }
  const isEarly = hook === 'onRequest' || hook === 'preParsing'
  return { hook, guard: createGuard(isEarly ? beforeBody(options, hook) : options, true) }
}

/** Fastify passes `preParsing` the stream of the body, too. */
function hookOf(hook: Hook, run: Run): onRequestHookHandler {
  if (hook !== 'preParsing') return (request, reply, next) => run(hook, request, reply, next)
  const early: preParsingHookHandler = (request, reply, _payload, next) =>
    run(hook, request, reply, next)
  return early as never
}

/** Runs after the hooks that a route has by itself. */
function append(route: RouteOptions, hook: Hook, handler: onRequestHookHandler): void {
  const others = (route as { [Name in Hook]?: unknown })[hook] ?? []
  Object.assign(route, { [hook]: [others, handler].flat() })
}

/** Fastify tells a plugin only of routes that come after it. */
function tooLate(hook: Hook): SluiceError {
  return new SluiceError(
    'SLUICE_OPTION',
    `rateLimit: this route has a hook of its own ('${hook}'), but was added before the plugin. Write ` +
      '`await app.register(rateLimit({ … }))` before the routes.',
  )
}

/** Most plugins are registered by themselves, and Fastify then calls them with the app. */
function checkNoApp(options: unknown): void {
  if (typeof (options as { addHook?: unknown } | undefined)?.addHook !== 'function') return
  throw new SluiceError(
    'SLUICE_OPTION',
    'rateLimit: options must be an object, got an app. Write app.register(rateLimit({ rules: … })).',
  )
}

function merged(
  options: FastifyOptions,
  own: Exclude<RouteLimit, false>,
  base: Guard<FastifyRequest, FastifyReply>,
): FastifyOptions {
  const { limiter, rules, policy, ...rest } = options
  const hasOwn = own.limiter ?? own.rules ?? own.policy
  const limits = hasOwn ? {} : { limiter: base.limiter }
  return { ...rest, ...own, ...limits } as FastifyOptions
}
