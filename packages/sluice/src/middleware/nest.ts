import type { CanActivate, ExecutionContext } from '@nestjs/common'
import { NodeIncoming } from '../http/connect.ts'
import { createGuard } from '../http/guard.ts'
import type { RateLimitOptions } from '../http/http-options.ts'

export type { Limited, RateLimitOptions, Report } from '../http/http-options.ts'

/** The response of Express or Fastify, as far as both are alike. */
interface NestResponse {
  readonly raw?: import('node:http').ServerResponse
}

/** Where Nest keeps the guards of a controller or handler. */
const GUARDS = '__guards__'

/**
 * rateLimit is a guard for Nest, on Express or Fastify: `@UseGuards(rateLimit({ rules }))`, or
 * `app.useGlobalGuards(rateLimit({ rules }))`.
 */
export function rateLimit(
  options: RateLimitOptions<ExecutionContext, ExecutionContext>,
): CanActivate {
  const guard = createGuard(options)
  return {
    async canActivate(context) {
      const http = context.switchToHttp()
      const request = http.getRequest()
      const response = http.getResponse<NestResponse & import('node:http').ServerResponse>()
      const raw = response.raw ?? response
      const entrance = await guard.enter(context, new NodeIncoming(request.raw ?? request))
      const { fields, refusal } = entrance
      for (const [name, value] of [...fields, ...(refusal?.fields ?? [])])
        raw.setHeader(name, value)
      if (refusal) {
        raw.statusCode = refusal.status
        raw.end(refusal.body)
        return false
      }
      if (entrance.spent) {
        raw.once('close', () => guard.settle(entrance, context, context))
      }
      return true
    },
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
