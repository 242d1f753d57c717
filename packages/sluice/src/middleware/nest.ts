import type { IncomingMessage, ServerResponse } from 'node:http'
import { type CanActivate, type ExecutionContext, HttpException } from '@nestjs/common'
import { systemClock } from '../core/clock.ts'
import { incomingOf, isGone } from '../http/connect.ts'
import { exposed, hasOrigin } from '../http/fields.ts'
import { type Framework, ofExpress, ofFastify } from '../http/framework.ts'
import { createGuard } from '../http/guard.ts'
import type { RateLimitOptions } from '../http/http-options.ts'
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

/**
 * rateLimit is a guard for Nest, on Express or Fastify: `@UseGuards(rateLimit({ rules }))`, or
 * `app.useGlobalGuards(rateLimit({ rules }))`. A refusal is an `HttpException`, for the app's
 * exception filters to see.
 */
export function rateLimit(
  options: RateLimitOptions<ExecutionContext, ExecutionContext>,
): CanActivate {
  const guard = createGuard(options, true)
  return {
    async canActivate(context) {
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

/** RateLimit limits a controller or one of its handlers: `@RateLimit({ rules })`. */
export function RateLimit(
  options: RateLimitOptions<ExecutionContext, ExecutionContext>,
): ClassDecorator & MethodDecorator {
  const guard = rateLimit(options)
  return (target: object, _name?: string | symbol, descriptor?: PropertyDescriptor) => {
    const guarded = descriptor ? descriptor.value : target
    const { getMetadata, defineMetadata } = Reflect as unknown as Metadata
    defineMetadata(GUARDS, [...(getMetadata(GUARDS, guarded) ?? []), guard], guarded)
  }
}

/** What reflect-metadata, which Nest brings, adds to `Reflect`. */
interface Metadata {
  getMetadata(name: string, target: object): unknown[] | undefined
  defineMetadata(name: string, value: unknown, target: object): void
}
