import type { FastifyInstance } from 'fastify'
import { createLimiter, parseRule } from 'sluice'
import { z } from 'zod'
import type { Limits } from '../limits.ts'
import type { Guard } from './api.ts'
import { read } from './check.ts'

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
    const { policy, changes } = limits()
    const { tier } = read(tierBody, body)
    policy.setTier(key, tier)
    changes.tiers.set(key, tier)
    await changes.save()
    return { key, tier }
  })
  app.delete<Named>('/v1/clients/:key/tier', change, async ({ params: { key } }) => {
    const { policy, changes } = limits()
    policy.setTier(key, undefined)
    changes.tiers.delete(key)
    await changes.save()
    return { key, tier: policy.tierOf(key) }
  })
  app.put<Named>('/v1/clients/:key/rules', change, async ({ params: { key }, body }) => {
    const { policy, changes } = limits()
    const texts = [read(rulesBody, body).rules].flat()
    const rules = texts.map((text) => parseRule(text))
    // Rules that do not go together are told here, and not to the client.
    createLimiter(rules)
    policy.setOverride(key, rules)
    changes.rules.set(key, texts)
    await changes.save()
    return { key, rules: texts }
  })
  app.delete<Named>('/v1/clients/:key/rules', change, async ({ params: { key } }) => {
    const { policy, changes } = limits()
    policy.setOverride(key, undefined)
    changes.rules.delete(key)
    await changes.save()
    return { key, rules: null }
  })
}
