import { setTimeout as sleep, setImmediate as tick } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { type AsyncLimiter, createLimiter, type FailureOptions, tokenBucket } from 'sluice'
import { type RedisClient, redisStore } from 'sluice/redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Fault, runFault } from './redis/chaos.ts'
import { chaosTwins } from './redis/chaos-twins.ts'
import { complaintsAbout } from './redis/checker.ts'
import { type Connected, viaIoredis, viaNodeRedis } from './redis/clients.ts'
import { faults, stopped } from './redis/faults.ts'
import type { RunOptions } from './redis/fleet.ts'
import { startLagMeter } from './redis/load.ts'
import { connectTo } from './redis/nodes.ts'
import { type RedisServer, startRedis } from './redis/server.ts'
import { until } from './redis/until.ts'

/** An event loop that is blocked this long, half a timeout, was disturbed by other processes. */
const DISTURBED_MS = 25

/** Returns the complaints of an undisturbed run of a fault, if there is one in a few attempts. */
async function complaints(fault: Fault, options?: RunOptions, isFine = isNothing) {
  for (let tries = 1; ; tries += 1) {
    const run = await runFault(fault, options)
    const complaints = complaintsAbout(run)
    if (isFine(complaints) || run.lagMs < DISTURBED_MS || tries === 4) return complaints
  }
}

const isNothing = (complaints: readonly string[]) => complaints.length === 0

describe('a fleet under load decides in time and within its limits, and recovers after', () => {
  it.each(faults.map((fault) => [fault.name, fault] as const))('%s', async (_, fault) => {
    expect(await complaints(fault)).toEqual([])
  })

  it.each(['open', 'closed'] as const)(
    `${stopped.name}, where it is to be %s`,
    async (onStoreFailure) => {
      expect(await complaints(stopped, { onStoreFailure })).toEqual([])
    },
  )
})

describe('these tests can fail, since they notice that', () => {
  it.each(chaosTwins.map((twin) => [twin.bug, twin] as const))('%s', async (_, twin) => {
    const { fault, options, complaint, besides } = twin
    const others = (all: readonly string[]) => all.filter((each) => !complaint.test(each))
    // A twin that fails every check would prove nothing about its bug.
    const strange = (all: readonly string[]) => others(all).filter((each) => !besides?.test(each))
    const all = await complaints(fault, options, (all) => isNothing(strange(all)))
    expect(strange(all)).toEqual([])
    expect(all.length, `of ${all}`).toBeGreaterThan(others(all).length)
  })
})

const TIMEOUT_MS = 50

/** How much longer than its timeout and the lag of the event loop a call may take. */
const SLACK_MS = 30

const LIMIT = 100
const rule = tokenBucket({ limit: LIMIT, per: '1h' })
let server: RedisServer
let admin: Redis
let connected: Connected[]

beforeAll(async () => {
  server = await startRedis()
  admin = connectTo(server.port)
  connected = [viaIoredis, viaNodeRedis].map((connect) => connect(server.port, () => {}))
  await Promise.all(connected.map(({ onReady }) => new Promise<void>(onReady)))
}, 120_000)
afterAll(async () => {
  for (const { close } of connected) close()
  admin.disconnect()
  await server.stop()
})

/** Creates a limiter and makes a first call, so that the server has its script. */
async function limiterOn(client: RedisClient, name: string, options: FailureOptions = {}) {
  const limiter = createLimiter(rule, {
    store: redisStore(client),
    name,
    timeoutMs: TIMEOUT_MS,
    ...options,
  })
  await answering(limiter)
  return limiter
}

/** Waits until Redis answers. It has then executed all earlier commands of that connection. */
async function answering(limiter: AsyncLimiter): Promise<void> {
  await until(async () => (await limiter.check('warm')).source === 'store', 'Redis answers')
}

/** Runs an action while the server is stopped. */
async function whileStopped<T>(action: () => Promise<T>): Promise<T> {
  server.process.kill('SIGSTOP')
  try {
    return await action()
  } finally {
    server.process.kill('SIGCONT')
  }
}

function block(ms: number): void {
  const endMs = performance.now() + ms
  while (performance.now() < endMs);
}

/** Returns the remaining units of a key in Redis, through another limiter. */
async function remainingOf(name: string, key: string): Promise<number> {
  const limiter = createLimiter(rule, { store: redisStore(admin), name, timeoutMs: 20_000 })
  const { source, remaining } = await limiter.peek(key)
  expect(source).toBe('store')
  return remaining
}

const clients = [
  ['ioredis', 0],
  ['node-redis', 1],
] as const

describe.each(clients)('while Redis is stopped, with %s,', (client, at) => {
  const verbs: [string, (limiter: AsyncLimiter) => Promise<unknown>][] = [
    ['reset', (limiter) => limiter.reset('alice')],
    ['block', (limiter) => limiter.block('alice', '1h')],
    ['unblock', (limiter) => limiter.unblock('alice')],
    ['clear', (limiter) => limiter.clear()],
    ['size', (limiter) => limiter.size()],
    ['entries', (limiter) => limiter.entries()[Symbol.asyncIterator]().next()],
  ]

  it.each(verbs)('%s rejects in time, and has no effect later', async (verb, call) => {
    const name = `${client} ${verb}`
    const limiter = await limiterOn(connected[at].client, name)
    await limiter.check('alice', 10)
    const lag = startLagMeter()
    const tookMs = await whileStopped(async () => {
      const startMs = performance.now()
      await expect(call(limiter)).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })
      return performance.now() - startMs
    })
    expect(tookMs).toBeLessThan(TIMEOUT_MS + SLACK_MS + lag.longestMs())
    lag.stop()
    await answering(limiter)
    expect(await remainingOf(name, 'alice')).toBe(LIMIT - 10)
  })

  it('charge and refund finish in time, and change the local share only', async () => {
    const name = `${client} charge`
    const limiter = await limiterOn(connected[at].client, name)
    const lag = startLagMeter()
    const { tookMs, remaining } = await whileStopped(async () => {
      const startMs = performance.now()
      await Promise.all([limiter.charge('alice', 10), limiter.refund('alice', 3)])
      const tookMs = performance.now() - startMs
      return { tookMs, remaining: (await limiter.peek('alice')).remaining }
    })
    expect(tookMs).toBeLessThan(TIMEOUT_MS + SLACK_MS + lag.longestMs())
    lag.stop()
    expect(remaining).toBe(LIMIT - 7)
    await answering(limiter)
    expect(await remainingOf(name, 'alice')).toBe(LIMIT)
  })

  it('calls that time out spend nothing later', async () => {
    const name = `${client} late`
    const limiter = await limiterOn(connected[at].client, name, { onStoreFailure: 'closed' })
    const { remaining, trips } = await late(name, limiter)
    expect(remaining).toBe(LIMIT)
    // The last trip is that of the answer above.
    expect(trips).toBeGreaterThanOrEqual(6)
  })

  it('a call that times out is charged to the local share once', async () => {
    const limiter = await limiterOn(connected[at].client, `${client} once`)
    const ask = () => Promise.all([1, 2, 3].map(() => limiter.check('alice')))
    const sources = (await whileStopped(ask)).map(({ source }) => source)
    expect(sources).toEqual(['local', 'local', 'local'])
    await answering(limiter)
    const again = await whileStopped(() => limiter.check('alice'))
    expect(again).toMatchObject({ source: 'local', remaining: LIMIT - 4 })
  })
})

describe.each(clients)(
  'while Redis is stopped and the event loop is busy, with %s,',
  (client, at) => {
    it.each([8, 20])('calls are decided in time, %i ms at a time', async (busyMs) => {
      for (const round of [1, 2, 3]) {
        const name = `${client} busy ${busyMs} ${round}`
        const limiter = await limiterOn(connected[at].client, name)
        const { mostMs, turnMs, sources } = await whileStopped(() => askWhileBusy(limiter, busyMs))
        expect(mostMs).toBeLessThan(TIMEOUT_MS + 2 * turnMs + SLACK_MS)
        expect(sources).toEqual(new Set(['local']))
        await answering(limiter)
      }
    })
  },
)

/** Makes calls for 300 ms on a busy event loop. Returns the longest call and the longest turn. */
async function askWhileBusy(limiter: AsyncLimiter, busyMs: number) {
  const startMs = performance.now()
  const sources = new Set<string>()
  let [asked, mostMs, turnMs] = [0, 0, 0]
  for (let nowMs = startMs; asked > 0 || nowMs < startMs + 300; ) {
    const sinceMs = nowMs
    for (let i = 0; i < 4 && nowMs < startMs + 300; i += 1) {
      asked += 1
      void limiter.check('alice').then(({ source }) => {
        asked -= 1
        mostMs = Math.max(mostMs, performance.now() - sinceMs)
        sources.add(source)
      })
    }
    block(busyMs)
    await tick()
    nowMs = performance.now()
    turnMs = Math.max(turnMs, nowMs - sinceMs)
    if (nowMs > startMs + 10_000) throw new Error(`${asked} calls were not decided`)
  }
  return { mostMs, turnMs, sources }
}

/**
 * Makes calls that time out, one per trip. Returns the remaining units and the trips that arrived.
 */
async function late(name: string, limiter: AsyncLimiter) {
  const before = await scriptsRun()
  await whileStopped(async () => {
    for (let i = 0; i < 4; i += 1) {
      expect((await limiter.check('alice')).source).toBe('closed')
      await sleep(5)
    }
    const many = await limiter.checkMany(Array.from({ length: 20 }, () => ({ key: 'alice' })))
    expect(many.map(({ source }) => source)).toEqual(Array(20).fill('closed'))
  })
  await answering(limiter)
  const trips = (await scriptsRun()) - before
  return { trips, remaining: await remainingOf(name, 'alice') }
}

/** Returns how many scripts Redis has run by hash. */
async function scriptsRun(): Promise<number> {
  const stats = await admin.info('commandstats')
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1])
}

describe('a call that timed out', () => {
  it('spends later if its script has no deadline, which proves the test above', async () => {
    const client: RedisClient = {
      call(command, args) {
        if (command === 'EVALSHA') args[2 + Number(args[1])] = '0'
        return admin.call(command, args)
      },
    }
    const limiter = await limiterOn(client, 'no deadline', { onStoreFailure: 'closed' })
    const { remaining } = await late('no deadline', limiter)
    expect(remaining).toBe(LIMIT - 24)
  })
})

describe('an event loop that is blocked for longer than the timeout', () => {
  const BLOCK_MS = 200

  it.each(clients)('times out no answers that have arrived, with %s', async (client, at) => {
    const limiter = await limiterOn(connected[at].client, `${client} blocked`)
    const asked = [
      () => limiter.check('alice'),
      () => limiter.checkMany(Array.from({ length: 20 }, (_, i) => ({ key: `key ${i}` }))),
    ]
    for (const ask of [...asked, ...asked]) {
      // No earlier timer is left, and this one comes before what has arrived.
      await sleep(2 * TIMEOUT_MS)
      await tick()
      const answer = ask()
      // This client writes only when the loop comes round.
      if (client === 'node-redis') await tick()
      block(BLOCK_MS)
      const sources = [await answer].flat().map(({ source }) => source)
      expect(new Set(sources)).toEqual(new Set(['store']))
    }
  })

  it.each(clients)(
    'times out no calls that it could not write before, with %s',
    async (client, at) => {
      const limiter = await limiterOn(connected[at].client, `${client} unwritten`)
      const rounds: string[][] = []
      for (let i = 0; i < 3; i += 1) {
        await sleep(2 * TIMEOUT_MS)
        // All but the first wait for its trip.
        const answers = Array.from({ length: 20 }, () => limiter.check('alice'))
        block(BLOCK_MS)
        const sources = (await Promise.all(answers)).map(({ source }) => source)
        rounds.push([...new Set(sources)])
      }
      // Other processes may have used the CPU in the remaining moment.
      expect(rounds).toContainEqual(['store'])
    },
  )

  it('times out no answers if it is blocked again right after reading one', async () => {
    const limiter = await limiterOn(connected[0].client, 'blocked again')
    await tick()
    for (let i = 0; i < 3; i += 1) {
      const answer = limiter.check('alice')
      block(BLOCK_MS)
      expect((await answer).source).toBe('store')
    }
  })

  it('times out with a plain timer, which proves these tests', async () => {
    await tick()
    const answer = admin.ping()
    const late = sleep(TIMEOUT_MS, 'late')
    block(BLOCK_MS)
    expect(await Promise.race([answer, late])).toBe('late')
  })
})
