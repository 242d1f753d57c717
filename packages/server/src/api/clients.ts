import type { FastifyInstance } from 'fastify'
import { createLimiter, parseRule } from 'sluice'
import { z } from 'zod'
import type { Limits } from '../limits.ts'
import type { Guard } from './api.ts'
import { readBody } from './read-body.ts'

const tierBody = z.strictObject({ tier: z.string() })
const rulesBody = z.strictObject({
  rules: z.union([z.string(), z.array(z.string()).min(1).max(16)]),
})

/**
 * addClients adds the management of tiers and overrides. A change holds from the next request on,
 * in this process, also when the configuration is read again, and after a restart if it is saved.
 */
export function addClients(app: FastifyInstance, guard: Guard, limits: () => Limits): void {
  const change = { onRequest: guard('full') }
  type Named = { Params: { key: string } }

  app.put<Named>('/v1/clients/:key/tier', change, async ({ params: { key }, body }) => {
    const { policy, assignments } = limits()
    const { tier } = readBody(tierBody, body, { tier: policy.tierOf(key) })
    // An unknown tier, or a key that is none, is told here. No client has an empty key.
    createLimiter(policy.rulesFor('', tier)).peek(key)
    await assignments.setTier(key, tier)
    return { key, tier }
  })
  app.delete<Named>('/v1/clients/:key/tier', change, async ({ params: { key } }) => {
    const { assignments } = limits()
    await assignments.setTier(key, undefined)
    return { key, tier: limits().policy.tierOf(key) }
  })
  app.put<Named>('/v1/clients/:key/rules', change, async ({ params: { key }, body }) => {
    const texts = [readBody(rulesBody, body, { rules: '100/1m burst 20' }).rules].flat()
    // Rules that do not go together are told here, and not to the client.
    createLimiter(texts.map((text) => parseRule(text))).peek(key)
    await limits().assignments.setRules(key, texts)
    return { key, rules: texts }
  })
  app.delete<Named>('/v1/clients/:key/rules', change, async ({ params: { key } }) => {
    await limits().assignments.setRules(key, undefined)
    return { key, rules: null }
  })
}
