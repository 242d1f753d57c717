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

/** Hook is the hook that counts requests. `request.body` is available from `'preValidation'` on. */
export type Hook = 'onRequest' | 'preParsing' | 'preValidation' | 'preHandler'

const HOOKS: readonly Hook[] = ['onRequest', 'preParsing', 'preValidation', 'preHandler']

interface HookOption {
  /**
   * The Fastify hook in which requests are counted. Default `'onRequest'`, before Fastify reads any
   * of them. A `key` from `request.body` needs `'preValidation'` or `'preHandler'`.
   */
  readonly hook?: Hook
}

/** FastifyOptions are the options of `rateLimit`, and its hook. */
export type FastifyOptions<Rules extends AnyRules = AnyRules> = HookOption &
  RateLimitOptions<FastifyRequest, FastifyReply, Rules>

/** RouteLimit is a route's `config.rateLimit`: false, or options that replace those of the plugin. */
export type RouteLimit =
  | false
  | FastifyOptions
  | (HookOption & RequestOptions<FastifyRequest, FastifyReply> & NoLimits)

/** The options of a route without its own limits, which has those of the plugin. */
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
    /**
     * What `rateLimit` has decided, and the permit if there is one; undefined if it did not count.
     */
    rateLimit?: RequestLimit
  }
}

/** The guard and hook of a route's requests. */
interface Counted {
  readonly hook: Hook
  readonly guard: Guard<FastifyRequest, FastifyReply>
}

/**
 * rateLimit is a plugin for Fastify: `app.register(rateLimit({ rules }))` limits all routes, and
 * requests for unknown ones. A route's `config: { rateLimit: { … } }` changes options for it, with
 * the same limiter unless it sets another; `rateLimit: false` excludes it.
 */
export function rateLimit<const Rules extends AnyRules>(
  given: FastifyOptions<Rules>,
): FastifyPluginCallback {
  const options = given as FastifyOptions
  checkNoApp(options)
  checkGiven(options)
  const base = countedBy(options)
  const ofRoutes = new WeakMap<object, Counted>()
  /** The guards of routes with their own hook. */
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
    // Keeps the hidden class of requests. Another instance of this plugin may have done it.
    if (!app.hasRequestDecorator('rateLimit')) app.decorateRequest('rateLimit', undefined)
    app.addHook('onRoute', (route) => {
      // Check options when the route is added, not at the first request.
      const counted = countedOf(route.config?.rateLimit)
      if (!counted || counted.hook === base.hook) return
      append(route, counted.hook, handlers[counted.hook])
      placed.add(counted)
    })
    app.addHook(base.hook as 'onRequest', handlers[base.hook])
    done()
  }
  return Object.assign(plugin, {
    // Apply to the whole app, not only to an encapsulated context.
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: 'sluice',
  })
}

type Run = (hook: Hook, request: FastifyRequest, reply: FastifyReply, next: Next) => void

/** Checks options, and creates their guard. */
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

/** Adapts to the hook: Fastify also passes the body's stream to `preParsing`. */
function hookOf(hook: Hook, run: Run): onRequestHookHandler {
  if (hook !== 'preParsing') return (request, reply, next) => run(hook, request, reply, next)
  const early: preParsingHookHandler = (request, reply, _payload, next) =>
    run(hook, request, reply, next)
  return early as never
}

/** Appends a handler to the route's own hooks. */
function append(route: RouteOptions, hook: Hook, handler: onRequestHookHandler): void {
  const others = (route as { [Name in Hook]?: unknown })[hook] ?? []
  Object.assign(route, { [hook]: [others, handler].flat() })
}

/**
 * Returns the error for a route that was added before the plugin, of which Fastify does not tell
 * it.
 */
function tooLate(hook: Hook): SluiceError {
  return new SluiceError(
    'SLUICE_OPTION',
    `rateLimit: this route has a hook of its own ('${hook}'), but was added before the plugin. Write ` +
      '`await app.register(rateLimit({ … }))` before the routes.',
  )
}

/** Throws if the options are an app: Fastify passes it if the plugin is registered without a call. */
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
