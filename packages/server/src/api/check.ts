import type { FastifyInstance } from 'fastify'
import { type Decision, SluiceError } from 'sluice'
import { z } from 'zod'
import { type AnyLimiter, type Limits, OWN } from '../limits.ts'
import type { ApiOptions, Guard } from './api.ts'
import { decisionText } from './decision-text.ts'
import { readBody } from './read-body.ts'

const MOST_CHECKS = 1_000

const check = z.strictObject({
  key: z.string(),
  cost: z.number().optional(),
  tier: z.string().optional(),
  /** The name of a route with rules of its own; default: the rules of the key's tier. */
  route: z.string().optional(),
})
type Check = z.infer<typeof check>
const example = { key: 'alice', cost: 1 }
const manyExample = { checks: [{ key: 'alice' }, { key: 'bob', cost: 5 }] }
const batch = z.strictObject({ checks: z.array(check).max(MOST_CHECKS) })

/**
 * addCheck adds `POST /v1/check`: one decision, or up to 1,000 in order. JSON has no infinity: where
 * there is no limit, it is null.
 */
export function addCheck(app: FastifyInstance, guard: Guard, options: ApiOptions): void {
  // Not async: where the store answers at once, so does this.
  app.post('/v1/check', { onRequest: guard('check') }, (request, reply) => {
    const { limits } = options.current()
    const { body } = request
    if (typeof body === 'object' && body !== null && 'checks' in body) {
      const { checks } = readBody(batch, body, manyExample)
      return decideAll(limits, checks, options).then((decisions) => ({ decisions }))
    }
    const asked = readBody(check, body, example)
    const { key, cost = 1, route = '', tier } = asked
    const startMs = performance.now()
    const answer = (decision: Decision) => {
      const seconds = (performance.now() - startMs) / 1_000
      options.onDecision({ route, key, tier, cost, decision, seconds })
      return reply.type('application/json').send(decisionText(decision))
    }
    const decision = limiterOf(limits, asked).check(key, cost, callOf(asked))
    return decision instanceof Promise ? decision.then(answer) : answer(decision)
  })
}

/** Those for the same limiter are one call, which on Redis is one trip. */
async function decideAll(limits: Limits, checks: readonly Check[], { onDecision }: ApiOptions) {
  const groups = new Map<AnyLimiter, number[]>()
  for (const [i, each] of checks.entries()) {
    const limiter = limiterOf(limits, each)
    const group = groups.get(limiter)
    if (group) group.push(i)
    else groups.set(limiter, [i])
  }
  const answers: Decision[] = []
  for (const [limiter, places] of groups) {
    const requests = places.map((i) => {
      const { key, cost = 1 } = checks[i]
      return { key, cost, ...callOf(checks[i]) }
    })
    const decisions = await limiter.checkMany(requests)
    for (const [j, i] of places.entries()) {
      const { route = '', key, tier, cost = 1 } = checks[i]
      onDecision({ route, key, tier, cost, decision: decisions[j], seconds: undefined })
      answers[i] = decisions[j]
    }
  }
  return answers
}

function limiterOf(limits: Limits, { route, tier }: Check): AnyLimiter {
  if (route === undefined) return limits.tiers
  const limiter = limits.routes.get(route)
  if (limiter && tier === undefined) return limiter
  const known = [...limits.routes.keys()].map((name) => JSON.stringify(name)).join(', ')
  throw new SluiceError(
    'SLUICE_OPTION',
    limiter
      ? 'give a route or a tier, not both: a route with rules of its own has no tiers.'
      : `no route ${JSON.stringify(route)} has rules of its own. There are: ${known || 'none'}.`,
  )
}

function callOf({ route, tier }: Check): { tier: string } | undefined {
  if (route !== undefined) return { tier: OWN }
  return tier === undefined ? undefined : { tier }
}
