import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { createLimiter, parseRule } from 'sluice'
import { redisStore } from 'sluice/redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisCluster, startCluster } from './redis/cluster.ts'
import { type OpenClient, openCluster } from './redis/cluster-clients.ts'
import { buildLibrary } from './threads/crew.ts'

let cluster: RedisCluster
let opened: OpenClient

beforeAll(async () => {
  await buildLibrary()
  cluster = await startCluster(3, 0)
  opened = await openCluster.ioredis(cluster)
}, 120_000)
afterAll(async () => {
  opened?.close()
  await cluster?.stop()
})

const HOLD_MS = 4_000
const rules = [
  '100/1d fixed-window name daily by user',
  `4 concurrent hold ${HOLD_MS}ms name streams by user`,
  '5/1d fixed-window name calls by org',
]

describe('nodes of a Cluster that are killed between the two phases', () => {
  /** Asks as a process of its own, which is killed once the row of the user has spent. */
  async function killed(): Promise<string | null> {
    const key = { user: 'alice', org: 'full' }
    const job = { addresses: cluster.addresses, prefix: 'kills', rules, key }
    const url = new URL('./redis/killed-node.mjs', import.meta.url)
    const child = fork(url, [JSON.stringify(job)], { execArgv: [] })
    const [, signal] = await once(child, 'exit')
    return signal
  }

  it('leave no rule exceeded, and lose what the guide says', async () => {
    const store = redisStore(opened.client, { prefix: 'kills' })
    const limiter = createLimiter(rules.map(parseRule), { store, name: 'killed', timeoutMs: 5_000 })
    const left = async () =>
      (await limiter.peek({ user: 'alice', org: 'other' })).rules.map((rule) => rule.remaining)
    await limiter.charge({ user: null, org: 'full' }, 5)
    expect(await left()).toEqual([100, 4, 5])
    const startMs = performance.now()
    expect(await Promise.all([killed(), killed()])).toEqual(['SIGKILL', 'SIGKILL'])
    const killedMs = performance.now()
    expect(await left()).toEqual([98, 2, 5])
    const asked = [1, 2, 3].map(() => limiter.tryAcquire({ user: 'alice', org: 'other' }))
    const permits = (await Promise.all(asked)).flatMap((each) => (each.allowed ? [each] : []))
    expect(permits.length).toBeLessThanOrEqual(2)
    for (const permit of permits) await permit.cancel()
    expect(await left()).toEqual([98, 2, 5])
    while ((await left())[1] < 4) await setTimeout(20)
    const backMs = performance.now()
    expect(backMs - startMs).toBeGreaterThan(HOLD_MS)
    // A quarter of the hold, and what a busy machine needs to look.
    expect(backMs - killedMs).toBeLessThan(1.25 * HOLD_MS + 1_000)
    expect(await left()).toEqual([98, 4, 5])
  }, 60_000)
})
