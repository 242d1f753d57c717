import { setTimeout } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { createSentinel } from 'redis'
import { type AsyncLimiter, createLimiter, fixedWindow } from 'sluice'
import { redisStore } from 'sluice/redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { OpenClient } from './redis/cluster-clients.ts'
import { tryEveryVerb } from './redis/every-verb.ts'
import { complaintsAbout, type Failover, isBack, startCallers } from './redis/failover.ts'
import { startLagMeter } from './redis/load.ts'
import { caughtUp, HOST, isMaster } from './redis/nodes.ts'
import { MASTER_NAME, startWatched, type Watched } from './redis/sentinel.ts'
import { until } from './redis/until.ts'

const kinds = ['ioredis', 'node-redis'] as const
type Kind = (typeof kinds)[number]

/** Connects a client of each kind through the Sentinel. */
const open: Record<Kind, (sentinel: { host: string; port: number }) => Promise<OpenClient>> = {
  async ioredis(sentinel) {
    const client = new Redis({ sentinels: [sentinel], name: MASTER_NAME })
    client.on('error', () => {})
    await client.ping()
    return { client, close: () => client.disconnect() }
  },

  async 'node-redis'(sentinel) {
    const client = createSentinel({ sentinelRootNodes: [sentinel], name: MASTER_NAME })
    client.on('error', () => {})
    await client.connect()
    return { client, close: () => void client.destroy() }
  },
}

const limit = 1_000_000
const rule = fixedWindow({ limit, per: '1d' })
let watched: Watched
let clients: Record<Kind, OpenClient>

beforeAll(async () => {
  watched = await startWatched()
  const sentinel = { host: HOST, port: watched.sentinelPort }
  const opened = kinds.map(async (kind) => [kind, await open[kind](sentinel)] as const)
  clients = Object.fromEntries(await Promise.all(opened)) as typeof clients
}, 120_000)
afterAll(async () => {
  for (const { close } of Object.values(clients ?? {})) close()
  await watched?.stop()
})

describe.each(kinds)('through a Sentinel, a client of %s', (kind) => {
  it('supports every verb', () => tryEveryVerb(clients[kind].client))
})

describe('when the master is killed under load, and a Sentinel makes its replica the master', () => {
  const timeoutMs = 200
  const policies = { ioredis: 'local', 'node-redis': 'closed' } as const
  const keys = Array.from({ length: 8 }, (_, i) => `key ${i}`)
  const seen = {} as Record<Kind, Failover>
  const told = {} as Record<Kind, string[]>
  const limiters = {} as Record<Kind, AsyncLimiter>

  beforeAll(async () => {
    for (const kind of kinds) {
      told[kind] = []
      limiters[kind] = createLimiter(rule, {
        store: redisStore(clients[kind].client),
        name: `${kind} lost`,
        timeoutMs,
        onStoreFailure: policies[kind],
        onDegraded: () => told[kind].push('degraded'),
        onRecovered: () => told[kind].push('recovered'),
      })
      await until(
        async () => (await limiters[kind].check('steady', 7)).source === 'store',
        'the store decides',
      )
    }
    const { master, replica } = watched
    await caughtUp(master, replica)
    const lag = startLagMeter()
    const loads = kinds.map((kind) => ({ kind, callers: startCallers(limiters[kind], keys) }))
    await setTimeout(500)
    const lostMs = performance.now()
    await master.server.kill()
    await until(() => isMaster(replica), 'the replica is the master')
    for (const { callers } of loads) {
      await until(() => isBack(callers.calls, keys), 'the store decides again')
    }
    await setTimeout(500)
    await Promise.all(loads.map(({ callers }) => callers.stop()))
    lag.stop()
    for (const { kind, callers } of loads) {
      const figures = { policy: policies[kind], timeoutMs, lagMs: lag.longestMs(), lostMs }
      seen[kind] = { ...figures, calls: callers.calls }
    }
  }, 60_000)

  it.each(kinds)('calls follow the policy, and the store recovers by itself: %s', (kind) => {
    expect(complaintsAbout(seen[kind])).toEqual([])
    expect(told[kind]).toEqual(['degraded', 'recovered'])
  })

  it.each(kinds)('replicated units are still used: %s', async (kind) => {
    const { source, remaining } = await limiters[kind].peek('steady')
    expect([source, remaining]).toEqual(['store', limit - 7])
  })

  it('the checks notice a missing failover', () => {
    const quiet = seen.ioredis.calls.filter(({ endMs }) => endMs < seen.ioredis.lostMs)
    expect(complaintsAbout({ ...seen.ioredis, calls: quiet })).toContain('no fail-over showed')
  })
})
