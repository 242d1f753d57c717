import 'reflect-metadata'
import type { AddressInfo } from 'node:net'
import fastifyRateLimit from '@fastify/rate-limit'
import { Controller, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler'
import express from 'express'
import { rateLimit } from 'express-rate-limit'
import fastify from 'fastify'
import { compactStore, createLimiter, memoryStore, type Store } from 'sluice'
import { sluiceStore as expressStore } from 'sluice/compat/express-rate-limit'
import { sluiceStore as fastifyStore } from 'sluice/compat/fastify-rate-limit'
import { sluiceStorage } from 'sluice/compat/nest-throttler'
import { redisStore } from 'sluice/redis'
import { sharedMemoryStore } from 'sluice/shared-memory'
import { manualClock } from 'sluice/testing'
import { describe, expect, it, vi } from 'vitest'
import {
  type Beyond,
  countedWindow,
  countingAlgorithm,
} from '../packages/sluice/src/compat/counter/counted-window.ts'
import { useRedis } from './redis/fixture.ts'
import { timedStore } from './redis/timed.ts'

const redis = useRedis()

let prefixes = 0
const stores = {
  memory: () => memoryStore(),
  compact: () => compactStore({ maxKeys: 1_000 }),
  'shared memory': () => sharedMemoryStore({ maxKeys: 1_000, maxBytes: 2 ** 22 }),
  redis: () => redisStore(redis.client, { prefix: `compat-${++prefixes}` }),
}
const names = Object.keys(stores) as (keyof typeof stores)[]

/** A timeout so long that a busy machine causes no local decisions within a burst. */
const patient = (name: keyof typeof stores) =>
  name === 'redis' ? { store: stores[name](), timeoutMs: 10_000 } : { store: stores[name]() }

/** Serves a middleware on a real socket. */
async function withExpress(
  handler: express.RequestHandler,
  use: (get: (path?: string) => Promise<Response>) => Promise<void>,
): Promise<void> {
  const app = express()
  app.use(handler)
  app.get('/', (_request, response) => void response.send('hello'))
  app.get('/wrong', (_request, response) => void response.status(400).send('wrong'))
  const server = app.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  try {
    await use((path = '/') => fetch(`http://127.0.0.1:${port}${path}`))
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
}

/** Values that a client can give to a key that is read from its request. */
const hostile: [string, unknown][] = [
  ['missing', undefined],
  ['empty', ''],
  ['too long', 'x'.repeat(1_025)],
  ['of lone surrogates', '\ud800'.repeat(1_025)],
  ['a list', ['alice', 'bob']],
  ['an object', Object.assign(Object.create(null), { a: 'alice' })],
]

describe.each(names)('express-rate-limit on %s', (name) => {
  it('admits exactly the limit of a burst, and reports it', () =>
    withExpress(
      rateLimit({
        windowMs: 60_000,
        limit: 5,
        standardHeaders: 'draft-7',
        store: expressStore(patient(name)),
      }),
      async (get) => {
        const all = await Promise.all(Array.from({ length: 20 }, () => get()))
        expect(all.filter(({ status }) => status === 200)).toHaveLength(5)
        const last = await get()
        expect(last.status).toBe(429)
        expect(last.headers.get('retry-after')).toMatch(/^(59|60)$/)
        expect(last.headers.get('ratelimit')).toMatch(/^limit=5, remaining=0, reset=(59|60)$/)
      },
    ))

  it('increments, decrements, reads and resets', async () => {
    const store = expressStore({ store: stores[name]() })
    store.init({ windowMs: 60_000 })
    expect(await store.get('alice')).toBeUndefined()
    expect(await store.increment('alice')).toMatchObject({ totalHits: 1 })
    expect(await store.increment('alice')).toMatchObject({ totalHits: 2 })
    await store.decrement('alice')
    expect(await store.get('alice')).toMatchObject({ totalHits: 1 })
    expect(await store.increment('bob')).toMatchObject({ totalHits: 1 })
    await store.resetKey('alice')
    expect(await store.increment('alice')).toMatchObject({ totalHits: 1 })
    await store.resetAll()
    expect(await store.get('bob')).toBeUndefined()
    const { resetTime } = await store.increment('bob')
    expect(Math.abs(resetTime.getTime() - Date.now() - 60_000)).toBeLessThan(2_000)
  })

  it('does not count skipped requests', () =>
    withExpress(
      rateLimit({
        windowMs: 60_000,
        limit: 2,
        skipFailedRequests: true,
        store: expressStore({ store: stores[name]() }),
      }),
      async (get) => {
        for (let i = 0; i < 4; i += 1) {
          expect((await get('/wrong')).status).toBe(400)
          // It is taken back when the response is done, which the client sees a moment earlier.
          await new Promise((resolve) => setTimeout(resolve, 20))
        }
        expect((await get()).status).toBe(200)
      },
    ))
})

describe('express-rate-limit', () => {
  it('starts a new window to the microsecond', async () => {
    const clock = manualClock()
    const store = expressStore({ store: memoryStore({ clock }) })
    store.init({ windowMs: 50 })
    await store.increment('alice')
    clock.advance(49.999)
    expect(await store.increment('alice')).toMatchObject({ totalHits: 2 })
    clock.advance(0.001)
    expect(await store.increment('alice')).toMatchObject({ totalHits: 1 })
  })

  it('separates two limits on one store by their names', async () => {
    const store = memoryStore()
    const [first, second] = ['api', 'login'].map((name) => expressStore({ store, name }))
    first.init({ windowMs: 1_000 })
    second.init({ windowMs: 2_000 })
    await first.increment('alice')
    expect(await second.get('alice')).toBeUndefined()
  })

  it('says what is wrong', async () => {
    expect(() => expressStore({ store: {} as never })).toThrow(/store must be a store/)
    expect(() => expressStore({ client: 1 } as never)).toThrow(/there is no option "client"/)
    expect(() => fastifyStore(memoryStore() as never)).toThrow(/got a store\. Pass { store: … }/)
    const store = expressStore()
    await expect(store.increment('alice')).rejects.toThrow(/rateLimit\(\{ store \}\)/)
    expect(() => store.init({ windowMs: 0 })).toThrow(/windowMs must be/)
    await expect(store.increment('alice')).rejects.toThrow(/windowMs must be/)
    const resetExpiryOnChange = 1 as never
    expect(() => expressStore({ resetExpiryOnChange })).toThrow(/must be true or false/)
  })

  it.each([0, -1, 0.5, Number.NaN, 34_560_000_001, '60000'])(
    'refuses a window of %o when the middleware is made',
    (windowMs) => {
      const error = vi.spyOn(console, 'error').mockImplementation(() => {})
      const make = () => rateLimit({ windowMs: windowMs as number, store: expressStore() })
      expect(make).toThrow(expect.objectContaining({ code: 'SLUICE_DURATION' }))
      error.mockRestore()
    },
  )

  it('takes a window of 400 days', () =>
    expect(() => rateLimit({ windowMs: 34_560_000_000, store: expressStore() })).not.toThrow())

  it.each(hostile)('counts requests whose key is %s', (_what, key) =>
    withExpress(
      rateLimit({
        limit: 2,
        passOnStoreError: true,
        validate: false,
        keyGenerator: () => key as string,
        store: expressStore(),
      }),
      async (get) => {
        const all = [await get(), await get(), await get()]
        expect(all.map(({ status }) => status)).toEqual([200, 200, 429])
      },
    ),
  )

  it('distinguishes over-long keys, in every verb', async () => {
    const store = expressStore()
    store.init({ windowMs: 60_000 })
    const [one, other] = ['1', '2'].map((last) => 'x'.repeat(1_024) + last)
    await store.increment(one)
    await store.increment(one)
    await store.decrement(one)
    expect(await store.get(one)).toMatchObject({ totalHits: 1 })
    expect(await store.get(other)).toBeUndefined()
    await store.resetKey(one)
    expect(await store.get(one)).toBeUndefined()
  })

  it('keeps a window, and its end, in which all requests were decremented', async () => {
    const clock = manualClock()
    const store = expressStore({ store: memoryStore({ clock }) })
    store.init({ windowMs: 50 })
    await store.increment('alice')
    await store.decrement('alice')
    expect(await store.get('alice')).toMatchObject({ totalHits: 0 })
    clock.advance(49.999)
    expect(await store.increment('alice')).toMatchObject({ totalHits: 1 })
    clock.advance(0.001)
    expect(await store.get('alice')).toBeUndefined()
  })

  it('gives a new client a whole window after an empty one was evicted', async () => {
    const clock = manualClock()
    const store = expressStore({ store: memoryStore({ clock, maxKeys: 4 }) })
    store.init({ windowMs: 50 })
    for (let i = 0; i < 20; i += 1) {
      await store.increment(`client ${i}`)
      await store.decrement(`client ${i}`)
    }
    clock.advance(40)
    const { totalHits, resetTime } = await store.increment('alice')
    expect(totalHits).toBe(1)
    expect(resetTime.getTime() - Date.now()).toBeGreaterThan(40)
  })

  it('restarts the window at each request with resetExpiryOnChange', async () => {
    const clock = manualClock()
    const store = expressStore({ store: memoryStore({ clock }), resetExpiryOnChange: true })
    store.init({ windowMs: 60 })
    for (const totalHits of [1, 2, 3]) {
      expect(await store.increment('alice')).toMatchObject({ totalHits })
      clock.advance(59)
    }
    clock.advance(1)
    expect(await store.increment('alice')).toMatchObject({ totalHits: 1 })
  })

  it('detects double counting per store only', async () => {
    const errors: string[] = []
    const logger = { error: ({ code }: { code: string }) => errors.push(code), warn: () => {} }
    const limit = (store: Store) =>
      rateLimit({ store: expressStore({ store }), logger: logger as never })
    const count = async (first: Store, second: Store) => {
      const app = express()
      app.use(limit(first), limit(second))
      await withExpress(app, async (get) => void (await get()))
    }
    await count(memoryStore(), memoryStore())
    expect(errors).toEqual([])
    const shared = memoryStore()
    await count(shared, shared)
    expect(errors).toEqual(['ERR_ERL_DOUBLE_COUNT'])
  })
})

/** Sends a few requests to a Fastify app, and returns their statuses. */
async function statuses(
  options: object,
  route: object,
  times: number,
  url = '/own',
): Promise<number[]> {
  const app = fastify()
  await app.register(fastifyRateLimit, options)
  app.get('/own', { config: { rateLimit: route } }, () => 'hello')
  app.get('/other', () => 'hello')
  const answers: number[] = []
  for (let i = 0; i < times; i += 1) answers.push((await app.inject(url)).statusCode)
  await app.close()
  return answers
}

describe.each(names)('@fastify/rate-limit on %s', (name) => {
  it('admits exactly the limit of a burst, and reports it', async () => {
    const app = fastify()
    await app.register(fastifyRateLimit, {
      max: 5,
      timeWindow: 60_000,
      store: fastifyStore(patient(name)),
    })
    app.get('/', () => 'hello')
    const all = await Promise.all(Array.from({ length: 20 }, () => app.inject('/')))
    expect(all.filter(({ statusCode }) => statusCode === 200)).toHaveLength(5)
    const { statusCode, headers } = await app.inject('/')
    expect([statusCode, headers['x-ratelimit-limit'], headers['x-ratelimit-remaining']]).toEqual([
      429,
      '5',
      '0',
    ])
    expect(headers['retry-after']).toMatch(/^(59|60)$/)
    await app.close()
  })

  it('bans clients that keep exceeding the limit', async () => {
    const store = fastifyStore({ store: stores[name]() })
    expect(await statuses({ max: 1, ban: 1, timeWindow: 60_000, store }, {}, 4)).toEqual([
      200, 429, 403, 403,
    ])
  })

  it('counts separately for a route with its own limits', async () => {
    const store = fastifyStore({ store: stores[name]() })
    const options = { max: 1, timeWindow: 60_000, store }
    expect(await statuses(options, { max: 2 }, 3, '/other')).toEqual([200, 429, 429])
    expect(await statuses(options, { max: 2 }, 3, '/own')).toEqual([200, 200, 429])
  })
})

describe('@fastify/rate-limit', () => {
  it('accepts numbers as keys', async () => {
    const options = { max: 1, timeWindow: 60_000, keyGenerator: () => 42, store: fastifyStore() }
    expect(await statuses(options, {}, 2, '/other')).toEqual([200, 429])
  })

  it.each(hostile)('counts requests whose key is %s', async (_what, key) => {
    const keyGenerator = () => key as string
    const options = { max: 2, skipOnError: true, keyGenerator }
    expect(await statuses({ ...options, store: fastifyStore() }, { max: 1 }, 2)).toEqual([200, 429])
    expect(await statuses({ ...options, store: fastifyStore() }, {}, 3, '/other')).toEqual([
      200, 200, 429,
    ])
  })

  it.each([0, 34_560_000_001])('refuses a window of %d when it is made', async (timeWindow) => {
    const code = 'SLUICE_DURATION'
    const bad = { timeWindow, store: fastifyStore() }
    await expect(statuses(bad, {}, 0)).rejects.toMatchObject({ code })
    const good = { timeWindow: 1_000, store: fastifyStore() }
    await expect(statuses(good, { timeWindow }, 0)).rejects.toMatchObject({ code })
  })

  it('separates keys of the app from keys of a route', async () => {
    const store = new (fastifyStore())({})
    const route = store.child({ routeInfo: { method: 'GET', url: '/own' } })
    const hits = (of: typeof store, key: string) =>
      new Promise((resolve) => of.incr(key, (_error, found) => resolve(found?.current), 1_000, 5))
    expect(await hits(route, 'alice')).toBe(1)
    for (const key of ['8:GET /own5:alice', 'GET /ownalice', '8:GET /ownalice']) {
      expect(await hits(store, key)).toBe(1)
    }
  })

  it.each([Number.NaN, Number.POSITIVE_INFINITY, 1.5, -1])('takes a limit of %d', async (max) => {
    const store = fastifyStore()
    const all = { max: () => max, continueExceeding: true, timeWindow: 60_000, store }
    const most = max >= 0 ? Math.min(max, 3) : max < 0 ? 0 : 3
    const expected = [1, 2, 3].map((count) => (count > most ? 429 : 200))
    expect(await statuses(all, {}, 3, '/other')).toEqual(expected)
  })

  it('fails, or skips, by skipOnError when the store is down and the mode is closed', async () => {
    const away = { call: () => new Promise(() => {}) }
    const store = () =>
      fastifyStore({ store: redisStore(away), timeoutMs: 5, onStoreFailure: 'closed' })
    const options = { max: 1, timeWindow: 60_000 }
    expect(await statuses({ ...options, store: store() }, {}, 1)).toEqual([500])
    expect(await statuses({ ...options, store: store(), skipOnError: true }, {}, 3)).toEqual([
      200, 200, 200,
    ])
  })

  it.each([
    ['open', [200, 200, 200]],
    ['local', [200, 429, 429]],
  ] as const)('keeps working when the store is down and the mode is %s', async (mode, expected) => {
    const away = { call: () => new Promise(() => {}) }
    const store = fastifyStore({ store: redisStore(away), timeoutMs: 5, onStoreFailure: mode })
    expect(await statuses({ max: 1, timeWindow: 60_000, store }, {}, 3)).toEqual(expected)
  })
})

describe.each(names)('@nestjs/throttler on %s', (name) => {
  it('admits exactly the limit of a burst, and reports it', async () => {
    @Controller()
    class Hello {
      @Get()
      hello() {
        return 'hello'
      }
    }
    @Module({
      imports: [
        ThrottlerModule.forRoot({
          throttlers: [{ ttl: 60_000, limit: 5 }],
          storage: sluiceStorage({ store: stores[name]() }),
        }),
      ],
      controllers: [Hello],
      providers: [{ provide: 'guard', useClass: ThrottlerGuard }],
    })
    class App {}
    const app = await NestFactory.create(App, { logger: false, abortOnError: false })
    app.useGlobalGuards(app.get('guard'))
    await app.listen(0, '127.0.0.1')
    const url = await app.getUrl()
    const all = await Promise.all(Array.from({ length: 20 }, () => fetch(url)))
    expect(all.filter(({ status }) => status === 200)).toHaveLength(5)
    const last = await fetch(url)
    expect(last.status).toBe(429)
    expect(last.headers.get('retry-after')).toMatch(/^(59|60)$/)
    await app.close()
  })

  it.each(hostile)('counts requests whose key is %s', async (_what, key) => {
    const storage = sluiceStorage({ store: stores[name]() })
    const ask = () => storage.increment(key as string, 10_000, 1, 10_000, 'default')
    expect([await ask(), await ask(), await ask()]).toMatchObject([
      { isBlocked: false, totalHits: 1 },
      { isBlocked: true, totalHits: 2 },
      { isBlocked: true, totalHits: 2 },
    ])
  })

  it('blocks a client for the block duration from the first excess request on', async () => {
    const storage = sluiceStorage({ store: stores[name]() })
    const ask = (limit: number, block: number, key = 'alice') =>
      storage.increment(key, 10_000, limit, block, 'default')
    expect(await ask(1, 90_000)).toEqual({
      totalHits: 1,
      timeToExpire: 10,
      isBlocked: false,
      timeToBlockExpire: 0,
    })
    expect(await ask(1, 90_000)).toMatchObject({ isBlocked: true, timeToBlockExpire: 90 })
    expect(await ask(1, 90_000)).toMatchObject({ isBlocked: true, timeToBlockExpire: 90 })
    expect(await ask(0, 0, 'nobody')).toMatchObject({ isBlocked: true, timeToBlockExpire: 10 })
    expect(await ask(1, 90_000, 'bob')).toMatchObject({ isBlocked: false })
  })
})

/** The effect of excess requests on a window: at ms → count, milliseconds to its end. */
const traces: [Beyond, string, [number, number, number][]][] = [
  [
    'nothing',
    'do not change the window',
    [
      [0, 1, 100],
      [10, 2, 90],
      [20, 3, 80],
      [99.999, 4, 0.001],
      [100, 1, 100],
    ],
  ],
  [
    'restart',
    'restart the window',
    [
      [0, 1, 100],
      [10, 2, 90],
      [20, 3, 100],
      [119.999, 4, 100],
      [219.998, 5, 100],
      [319.998, 1, 100],
    ],
  ],
  [
    'double',
    'double it',
    [
      [0, 1, 100],
      [10, 2, 90],
      [20, 3, 100],
      [30, 4, 200],
      [40, 5, 400],
      [440, 1, 100],
    ],
  ],
  [
    250,
    'extend the window from the first one on',
    [
      [0, 1, 100],
      [10, 2, 90],
      [20, 3, 250],
      [30, 4, 240],
      [269.999, 5, 0.001],
      [270, 1, 100],
    ],
  ],
]

describe.each(traces)('requests beyond the limit (%s)', (beyond, what, steps) => {
  const clocked = {
    memory: () => {
      const clock = manualClock()
      return { clock, store: memoryStore({ clock }) }
    },
    redis: () => timedStore(redis.client),
  }

  it.each(Object.keys(clocked) as (keyof typeof clocked)[])(`${what}, on %s`, async (name) => {
    const { clock, store } = clocked[name]()
    const rule = countedWindow(countingAlgorithm(beyond), 100, 2)
    const limiter = createLimiter(rule, { store } as object)
    const seen: [number, number, number][] = []
    let nowMs = 0
    for (const [atMs] of steps) {
      clock.advance(atMs - nowMs)
      nowMs = atMs
      const { capacity, remaining, resetAfterMs } = await limiter.check('alice')
      seen.push([atMs, capacity - remaining, resetAfterMs])
    }
    expect(seen).toEqual(steps)
  })
})
