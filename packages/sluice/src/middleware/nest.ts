import type { IncomingMessage, ServerResponse } from 'node:http'
import { type CanActivate, type ExecutionContext, HttpException } from '@nestjs/common'
import { systemClock } from '../core/clock.ts'
import { incomingOf, isGone } from '../http/connect.ts'
import { exposed, hasOrigin } from '../http/fields.ts'
import { type Framework, ofExpress, ofFastify } from '../http/framework.ts'
import { createGuard } from '../http/guard.ts'
import type { AnyRules, RateLimitOptions } from '../http/http-options.ts'
import type { Refusal } from '../http/refusal.ts'
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

/** The common part of the responses of Express and Fastify. */
interface NestResponse {
  readonly raw?: ServerResponse
  header(name: string, value: string): unknown
  getHeader(name: string): unknown
}

/** The proxy setting of Express or Fastify, whichever Nest runs on. */
const ofNest: Framework<{ readonly raw?: IncomingMessage; readonly ip?: string }> = {
  trusting: (request) => (request.raw ? ofFastify : ofExpress).trusting(request),
  ip: (request) => (request.raw ? ofFastify : ofExpress).ip(request),
}

/** The metadata key under which Nest keeps the guards of a controller or handler. */
const GUARDS = '__guards__'

/** The metadata key for the guards of this library that count a controller or handler. */
const COUNTING = 'sluice:counting'

/**
 * rateLimit is a guard for Nest, on Express or Fastify: `@UseGuards(rateLimit({ rules }))`, or
 * `app.useGlobalGuards(rateLimit({ rules }))`. A refusal is an `HttpException`, which passes the
 * app's exception filters. `@RateLimit` and `@SkipRateLimit` replace it for a controller or
 * handler.
 */
export function rateLimit<const Rules extends AnyRules>(
  options: RateLimitOptions<ExecutionContext, ExecutionContext, Rules>,
): CanActivate {
  const guard = createGuard(options, true)
  const nestGuard: CanActivate = {
    async canActivate(context) {
      if (!isCounted(nestGuard, context)) return true
      const http = context.switchToHttp()
      const request = http.getRequest()
      const raw: IncomingMessage = request.raw ?? request
      const response = http.getResponse<NestResponse>()
      const outgoing: ServerResponse = response.raw ?? (response as never)
      const incoming = incomingOf(raw, ofNest, request)
      if (!incoming) return drop(outgoing)
      const entrance = await guard.enter(context, incoming)
      const { fields, refusal, limit, delayMs, spent } = entrance
      // Before anything that may throw.
      if (spent) {
        whenDone(raw, outgoing, (isWhole) => guard.finish(entrance, context, context, isWhole))
      }
      for (const [name, value] of [...fields, ...(refusal?.fields ?? [])])
        response.header(name, value)
      if (fields.length > 0 && hasOrigin(raw)) {
        const others = response.getHeader('access-control-expose-headers')
        response.header('access-control-expose-headers', exposed(fields, others))
      }
      if (refusal) throw new HttpException(bodyOf(refusal), refusal.status)
      if (limit) request.rateLimit = limit
      if (delayMs > 0) await systemClock.sleep(delayMs)
      return isGone(raw, outgoing) ? drop(outgoing) : true
    },
  }
  return nestGuard
}

/**
 * rateLimitOf returns the decision about a request that `rateLimit` has admitted, and its permit if
 * it has one: `request.rateLimit` of the request that Nest passes, `@Req() request`. undefined if
 * it was not counted.
 */
export function rateLimitOf(request: object): RequestLimit | undefined {
  return (request as { rateLimit?: RequestLimit }).rateLimit
}

/** Never resolves: Nest would treat a refusal as an error, with filters and logs. */
function drop(response: ServerResponse): Promise<never> {
  response.destroy()
  return new Promise(() => {})
}

/**
 * Returns the body for Nest, which writes objects as they are but turns text into `{ statusCode,
 * message }`.
 */
function bodyOf({ body, fields }: Refusal): string | object {
  const type = fields.find(([name]) => name.toLowerCase() === 'content-type')?.[1]
  if (!type?.includes('json')) return body
  try {
    return JSON.parse(body)
  } catch {
    return body
  }
}

/**
 * RateLimit limits a controller or one of its handlers. On a handler it replaces that of the
 * controller, and on either it replaces global guards of `rateLimit`. Several on one target all
 * count.
 */
export function RateLimit<const Rules extends AnyRules>(
  options: RateLimitOptions<ExecutionContext, ExecutionContext, Rules>,
): ClassDecorator & MethodDecorator {
  const guard = rateLimit(options)
  return decorator((place) => {
    define(GUARDS, [...(metadata.getMetadata(GUARDS, place) ?? []), guard], place)
    define(COUNTING, [...(metadata.getOwnMetadata(COUNTING, place) ?? []), guard], place)
  })
}

/** SkipRateLimit excludes a controller or one of its handlers: no guard of `rateLimit` counts it. */
export function SkipRateLimit(): ClassDecorator & MethodDecorator {
  return decorator((place) => define(COUNTING, [], place))
}

function decorator(decorate: (place: object) => void): ClassDecorator & MethodDecorator {
  return (target: object, _name?: string | symbol, descriptor?: PropertyDescriptor) =>
    decorate(descriptor ? descriptor.value : target)
}

/**
 * Tells whether a guard counts a request. Decorators of the handler take precedence over the
 * controller's.
 */
function isCounted(guard: CanActivate, context: ExecutionContext): boolean {
  const counting =
    metadata.getMetadata(COUNTING, context.getHandler()) ??
    metadata.getMetadata(COUNTING, context.getClass())
  return counting === undefined || counting.includes(guard)
}

/** The part of `Reflect` that reflect-metadata adds, a dependency of Nest. */
interface Metadata {
  getMetadata(name: string, target: object): unknown[] | undefined
  getOwnMetadata(name: string, target: object): unknown[] | undefined
  defineMetadata(name: string, value: unknown, target: object): void
}

const metadata = Reflect as unknown as Metadata

function define(name: string, value: unknown, place: object): void {
  metadata.defineMetadata(name, value, place)
}
