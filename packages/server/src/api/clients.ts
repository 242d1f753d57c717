import type { FastifyInstance } from 'fastify'
import { parseRule } from 'sluice'
import { z } from 'zod'
import { localLimiter } from '../local-limiter.ts'
import { serviceRule } from '../service-rule.ts'
import { type ShownRule, shownRule } from '../shown-rule.ts'
import { type AccessGuard, type ApiOptions, wholeOf } from './api.ts'
import { readBody } from './read-body.ts'

const tierBody = z.strictObject({ tier: z.string() })
const rulesBody = z.strictObject({
  rules: z.union([z.string(), z.array(z.string()).min(1).max(16)]),
})

const MOST_LISTED = 1_000

/**
 * addClients adds the management of tiers and overrides. A change applies from the next request on
 * and survives a reload of the configuration, and also a restart if assignments are stored.
 */
export function addClients(
  app: FastifyInstance,
  guard: AccessGuard,
  current: ApiOptions['current'],
): void {
  const limits = () => current().limits
  const change = { onRequest: guard('full') }
  type Named = { Params: { key: string } }

  app.get('/v1/clients', { onRequest: guard('read') }, async (request) => {
    const query = request.query as Record<string, string | undefined>
    const count = wholeOf('count', query.count ?? '100', 1, MOST_LISTED)
    const from = wholeOf('from', query.from ?? '0', 0, 100_000_000)
    const all = clientsOf(current()).filter(({ key }) => key.includes(query.filter ?? ''))
    const to = from + count
    return { clients: all.slice(from, to), next: to < all.length ? to : null }
  })
  app.put<Named>('/v1/clients/:key/tier', change, async ({ params: { key }, body }) => {
    const { policy, assignments } = limits()
    const { tier } = readBody(tierBody, body, { tier: policy.tierOf(key) })
    // Throws for an unknown tier or an invalid key. No client has the empty key.
    localLimiter(policy.rulesFor('', tier)).peek(key)
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
    // Throws for rules that cannot be combined, before a client would meet the error.
    localLimiter(texts.map(serviceRule)).peek(key)
    await limits().assignments.setRules(key, texts)
    return { key, rules: texts }
  })
  app.delete<Named>('/v1/clients/:key/rules', change, async ({ params: { key } }) => {
    await limits().assignments.setRules(key, undefined)
    return { key, rules: null }
  })
}

/**
 * A client with its own tier or rules: from the API, which takes precedence, or the configuration.
 */
interface ListedClient {
  readonly key: string
  readonly tier: string | null
  readonly rules: readonly ShownRule[] | null
  readonly origin: 'api' | 'config'
}

/** Clients with assignments first, then those of the configuration. */
function clientsOf({ limits, settings }: ReturnType<ApiOptions['current']>): ListedClient[] {
  const { tiers, rules } = limits.assignments
  const { clients, overrides } = settings
  return [
    ...[...new Set([...tiers.keys(), ...rules.keys()])].map((key) => {
      const own = rules.get(key)?.map((text) => shownRule(parseRule(text))) ?? null
      return { key, tier: tiers.get(key) ?? null, rules: own, origin: 'api' as const }
    }),
    ...[...new Set([...Object.keys(clients), ...Object.keys(overrides)])].map((key) => {
      const tier = Object.hasOwn(clients, key) ? clients[key] : null
      const own = Object.hasOwn(overrides, key) ? overrides[key].map(shownRule) : null
      return { key, tier, rules: own, origin: 'config' as const }
    }),
  ]
}
