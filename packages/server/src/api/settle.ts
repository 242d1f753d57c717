import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { AccessGuard, ApiOptions } from './api.ts'
import { askedFields, checkCost, questionOf } from './question.ts'
import { readBody } from './read-body.ts'

const settled = z.strictObject({ ...askedFields, cost: z.number() })
const example = { key: 'alice', cost: 5 }

/**
 * addSettle adds `POST /v1/charge` and `POST /v1/refund`, for costs that are known only afterwards.
 * A charge needs the same access as a check, since it cannot make limits admit more. A refund can,
 * like a reset, so it needs the same access as a reset.
 */
export function addSettle(app: FastifyInstance, guard: AccessGuard, options: ApiOptions): void {
  const { current, onSettled } = options

  app.post('/v1/charge', { onRequest: guard('check') }, async ({ body }) => {
    const { limiter, key, cost, call, route } = questionOf(
      current(),
      readBody(settled, body, example),
    )
    await limiter.charge(key, cost, call)
    onSettled({ route, verb: 'charge' })
    return { key, charged: cost }
  })

  app.post('/v1/refund', { onRequest: guard('full') }, async ({ body }) => {
    const asked = readBody(settled, body, example)
    checkCost('cost', asked.cost, 'To take units, send POST /v1/charge.')
    const { limiter, key, cost, call, route } = questionOf(current(), asked)
    await limiter.refund(key, cost, call)
    onSettled({ route, verb: 'refund' })
    return { key, refunded: cost }
  })
}
