import { type ChildProcess, fork } from 'node:child_process'
import { setTimeout } from 'node:timers/promises'
import { concurrency, createLimiter, type Limiter } from 'sluice'
import { redisStore } from 'sluice/redis'
import { attachSharedMemory, sharedMemoryStore } from 'sluice/shared-memory'
import { beforeAll, describe, expect, it } from 'vitest'
import { useRedis } from './redis/fixture.ts'
import { buildLibrary } from './threads/crew.ts'

const redis = useRedis()
beforeAll(buildLibrary, 60_000)

interface Job {
  readonly name: string
  readonly limit: number
  readonly holdMs: number
  readonly units: number
  /** A bug of the processes. */
  readonly broken?: 'held too long' | 'counted by itself'
}

describe('four processes that hold units of one concurrency limit on Redis', () => {
  async function start(job: Job): Promise<ChildProcess> {
    const text = JSON.stringify({ ...job, port: redis.server.port })
    const child = fork(new URL('./redis/holder.mjs', import.meta.url), [text], { execArgv: [] })
    await new Promise((resolve) => child.once('message', resolve))
    return child
  }

  const kill = (child: ChildProcess) =>
    new Promise((resolve) => {
      child.once('exit', resolve)
      child.kill('SIGKILL')
    })

  /** Kills and replaces processes at random, and returns the result. */
  async function hammer(job: Job, runMs: number) {
    const alive = await Promise.all(Array.from({ length: 4 }, () => start(job)))
    const endMs = performance.now() + runMs
    let killed = 0
    while (performance.now() < endMs) {
      await setTimeout(50 + Math.random() * 200)
      await kill(alive.shift()!)
      killed += 1
      alive.push(await start(job))
    }
    await Promise.all(alive.map(kill))
    const limiter = createLimiter(concurrency({ limit: job.limit, hold: job.holdMs }), {
      ...{ store: redisStore(redis.client), name: job.name, timeoutMs: 5_000 },
    })
    const heldAtEnd = job.limit - (await limiter.peek('key')).remaining
    await setTimeout(job.holdMs * 1.25)
    const whole = await limiter.tryAcquire('key', job.limit)
    const [most, refused] = await redis.client.mget(`most:${job.name}`, `refused:${job.name}`)
    return { killed, heldAtEnd, whole, most: Number(most), refused: Number(refused) }
  }

  const job = { limit: 10, holdMs: 600, units: 3 }

  it('never hold more together while random ones are killed, and all units come back in time', async () => {
    const { killed, heldAtEnd, whole, most, refused } = await hammer(
      { ...job, name: 'hold' },
      4_000,
    )
    expect(whole).toMatchObject({ allowed: true, decision: { source: 'store' } })
    expect(most).toBeLessThanOrEqual(job.limit)
    expect(most).toBeGreaterThan(job.limit / 2)
    expect(refused).toBeGreaterThan(0)
    expect(killed).toBeGreaterThan(3)
    expect(heldAtEnd).toBeGreaterThan(0)
  })

  it('hold more if each counts by itself, which proves that test', async () => {
    const { most } = await hammer({ ...job, name: 'apart', broken: 'counted by itself' }, 500)
    expect(most).toBeGreaterThan(job.limit)
  })

  it('hold too long if holds last ten times as long, which proves that test', async () => {
    const { whole } = await hammer({ ...job, name: 'long', broken: 'held too long' }, 500)
    expect(whole.allowed).toBe(false)
  })
})

type Waiting = Pick<Limiter, 'tryAcquire' | 'acquire'>

/** Returns how long a waiter on one node takes to get units that the other releases, in order. */
async function wakesMs(holder: Waiting, waiter: Waiting, times: number): Promise<number[]> {
  const taken: number[] = []
  for (let i = 0; i < times; i += 1) {
    const permit = await holder.tryAcquire('key')
    if (!permit.allowed) throw new Error('it is held by another')
    let acquiredMs = 0
    const waiting = waiter.acquire('key').then(async (acquired) => {
      acquiredMs = performance.now()
      await acquired.release()
    })
    await setTimeout(Math.random() * 150)
    const releasedMs = performance.now()
    await permit.release()
    await waiting
    taken.push(acquiredMs - releasedMs)
  }
  return taken.sort((a, b) => a - b)
}

describe('a caller that waits for a unit', () => {
  const rule = concurrency({ limit: 1, hold: '1m' })
  const name = { name: 'wake', share: true }

  it.each(['Redis', 'shared memory'])('gets what another node on %s releases', async (where) => {
    const shared = sharedMemoryStore()
    const nodes = [0, 1].map(() =>
      where === 'Redis'
        ? createLimiter(rule, { store: redisStore(redis.client), ...name, timeoutMs: 5_000 })
        : createLimiter(rule, { store: attachSharedMemory(shared.handle), ...name }),
    ) as unknown as Waiting[]
    const taken = await wakesMs(nodes[0], nodes[1], 12)
    const [median, most] = [taken[taken.length / 2], taken[taken.length - 1]]
    console.log(
      `${where}: half of them within ${median.toFixed(1)} ms, all in ${most.toFixed(1)} ms`,
    )
    // On an idle machine this takes less than 100 ms.
    expect(most).toBeLessThan(1_000)
  })
})
