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

/** The response of Express or Fastify, as far as both are alike. */
interface NestResponse {
  readonly raw?: ServerResponse
  header(name: string, value: string): unknown
  getHeader(name: string): unknown
}

/** Express or Fastify, whichever Nest runs on. */
const ofNest: Framework<{ readonly raw?: IncomingMessage; readonly ip?: string }> = {
  trusting: (request) => (request.raw ? ofFastify : ofExpress).trusting(request),
  ip: (request) => (request.raw ? ofFastify : ofExpress).ip(request),
}

/** Where Nest keeps the guards of a controller or handler. */
const GUARDS = '__guards__'

/** Where decorators note which guards of ours count a controller or handler; no other does. */
const COUNTING = 'sluice:counting'

/**
 * rateLimit is a guard for Nest, on Express or Fastify: `@UseGuards(rateLimit({ rules }))`, or
 * `app.useGlobalGuards(rateLimit({ rules }))`. A refusal is an `HttpException`, for the app's
 * exception filters to see. `@RateLimit` and `@SkipRateLimit` replace it for a controller or handler.
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
      // Before all that may throw.
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
 * rateLimitOf is what was decided about a request that `rateLimit` has let through, and its permit where
 * it has one: `request.rateLimit` of the request that Nest passes, `@Req() request`. Undefined if it was
 * not counted.
 */
export function rateLimitOf(request: object): RequestLimit | undefined {
  return (request as { rateLimit?: RequestLimit }).rateLimit
}

/** Never answers: Nest takes a refusal for an error, and has filters and logs for those. */
function drop(response: ServerResponse): Promise<never> {
  response.destroy()
  return new Promise(() => {})
}

/** Nest writes objects as they are; of a text its filter makes `{ statusCode, message }`. */
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
 * RateLimit limits a controller or one of its handlers, in place of what would limit it otherwise: that of
 * a handler replaces that of its controller, and either replaces global guards of `rateLimit`. Several at
 * one place all count.
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

/** SkipRateLimit leaves a controller or one of its handlers alone: no guard of `rateLimit` counts it. */
export function SkipRateLimit(): ClassDecorator & MethodDecorator {
  return decorator((place) => define(COUNTING, [], place))
}

function decorator(decorate: (place: object) => void): ClassDecorator & MethodDecorator {
  return (target: object, _name?: string | symbol, descriptor?: PropertyDescriptor) =>
    decorate(descriptor ? descriptor.value : target)
}

/** Tells whether a guard counts a request: its handler decides, else its controller. */
function isCounted(guard: CanActivate, context: ExecutionContext): boolean {
  const counting =
    metadata.getMetadata(COUNTING, context.getHandler()) ??
    metadata.getMetadata(COUNTING, context.getClass())
  return counting === undefined || counting.includes(guard)
}

/** What reflect-metadata, which Nest brings, adds to `Reflect`. */
interface Metadata {
  getMetadata(name: string, target: object): unknown[] | undefined
  getOwnMetadata(name: string, target: object): unknown[] | undefined
  defineMetadata(name: string, value: unknown, target: object): void
}

const metadata = Reflect as unknown as Metadata

function define(name: string, value: unknown, place: object): void {
  metadata.defineMetadata(name, value, place)
}
