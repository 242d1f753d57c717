import type { FastifyInstance } from 'fastify'
import { type Decision, type Duration, SluiceError } from 'sluice'
import { z } from 'zod'
import type { Limits } from '../limits.ts'
import { shownRule } from '../shown-rule.ts'
import { type AccessGuard, type ApiOptions, wholeOf } from './api.ts'
import { readBody } from './read-body.ts'
import { routesFor } from './routes-for.ts'

const MOST_LISTED = 1_000
const block = z.strictObject({ duration: z.union([z.string(), z.number()]) })

/** addKeys adds the administration of keys: status, listing, reset and blocks. */
export function addKeys(
  app: FastifyInstance,
  guard: AccessGuard,
  current: ApiOptions['current'],
): void {
  const limits = () => current().limits
  const look = { onRequest: guard('read') }
  const change = { onRequest: guard('full') }
  type Named = { Params: { key: string } }

  app.get<Named>('/v1/keys/:key', look, async ({ params: { key } }) => {
    const { policy, assignments, all } = limits()
    const states: Record<string, Decision> = Object.create(null)
    for (const [name, limiter] of all) states[name] = await limiter.peek(key)
    const rules = policy.rulesFor(key).map(shownRule)
    const { tiers: byTier, rules: own } = assignments
    const given = { tier: byTier.get(key) ?? null, rules: own.get(key) ?? null }
    const routes = await routesFor(key, current())
    return { key, tier: policy.tierOf(key), rules, given, limits: states, routes }
  })

  app.get('/v1/keys', look, async (request) => {
    const query = request.query as Record<string, string | undefined>
    const count = wholeOf('count', query.count ?? '100', 1, MOST_LISTED)
    const from = wholeOf('from', query.from ?? '0', 0, 100_000_000)
    const { all } = limits()
    const asked = query.limiter === undefined ? all : named(all, query.limiter)
    const isBlocked = onlyTrue('blocked', query.blocked)
    const isWanted = (key: string, { source }: Decision) =>
      key.includes(query.filter ?? '') && (!isBlocked || source === 'blocked')
    return page(asked, isWanted, from, count)
  })

  app.delete<Named>('/v1/keys/:key', change, async ({ params: { key } }) => {
    for (const limiter of limits().all.values()) await limiter.reset(key)
    return { key, reset: true }
  })

  app.delete('/v1/keys', change, async () => {
    for (const limiter of limits().all.values()) await limiter.clear()
    return { reset: 'all' }
  })

  app.post<Named>('/v1/keys/:key/block', change, async ({ params: { key }, body }) => {
    const { duration } = readBody(block, body, { duration: '10m' })
    for (const limiter of limits().all.values()) await limiter.block(key, duration as Duration)
    return { key, blocked: duration }
  })

  app.delete<Named>('/v1/keys/:key/block', change, async ({ params: { key } }) => {
    for (const limiter of limits().all.values()) await limiter.unblock(key)
    return { key, blocked: false }
  })
}

function named(all: Limits['all'], name: string): Limits['all'] {
  const limiter = all.get(name)
  if (limiter) return new Map([[name, limiter]])
  const known = [...all.keys()].map((each) => JSON.stringify(each)).join(', ')
  throw new SluiceError(
    'SLUICE_OPTION',
    `there is no limiter ${JSON.stringify(name)}. Known: ${known}.`,
  )
}

/** Reads a flag that is `true` or missing: `false` would suggest a list of unblocked keys only. */
function onlyTrue(name: string, text: string | undefined): boolean {
  if (text === undefined || text === 'true') return text === 'true'
  throw new SluiceError('SLUICE_OPTION', `${name} must be true, or left out.`)
}

/** Lists a page of the wanted keys of all limiters; `next` is where the next page begins. */
async function page(
  limiters: Limits['all'],
  isWanted: (key: string, decision: Decision) => boolean,
  from: number,
  count: number,
) {
  const keys: object[] = []
  let seen = 0
  for (const [name, limiter] of limiters) {
    for await (const { key, decision } of limiter.entries()) {
      if (!isWanted(key, decision)) continue
      seen += 1
      if (seen <= from) continue
      if (keys.length === count) return { keys, next: from + count }
      keys.push({ key, limiter: name, ...decision })
    }
  }
  return { keys, next: null }
}
