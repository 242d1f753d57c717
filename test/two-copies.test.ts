import { once } from 'node:events'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { Redis } from 'ioredis'
import * as imported from 'sluice'
import * as importedCompat from 'sluice/compat/express-rate-limit'
import * as importedExpress from 'sluice/express'
import * as importedFetch from 'sluice/fetch'
import * as importedRedis from 'sluice/redis'
import * as importedSharedMemory from 'sluice/shared-memory'
import { beforeAll, describe, expect, it } from 'vitest'
import { useRedis } from './redis/fixture.ts'
import { buildLibrary } from './threads/crew.ts'

const esm = {
  ...imported,
  ...importedCompat,
  ...importedFetch,
  ...importedRedis,
  ...importedSharedMemory,
  forExpress: importedExpress.rateLimit,
}
type Copy = typeof esm

beforeAll(buildLibrary, 60_000)
const redis = useRedis()

/** Loads the CommonJS build: another copy of every module. */
function required(): Copy {
  const require = createRequire(import.meta.url)
  const load = (file: string) => require(`../packages/sluice/dist/cjs/${file}.js`)
  return {
    ...load('index'),
    ...load('compat/express-rate-limit'),
    ...load('middleware/fetch'),
    ...load('stores/redis/redis'),
    ...load('stores/shared-memory/shared-memory'),
    forExpress: load('middleware/express').rateLimit,
  }
}

describe.each([
  ['ES modules', 'CommonJS', () => [esm, required()]],
  ['CommonJS', 'ES modules', () => [required(), esm]],
] as const)('objects of %s, used by %s:', (_made, _used, copies) => {
  it('they are two copies', () => {
    const [a, b] = copies()
    expect(a.createLimiter).not.toBe(b.createLimiter)
    expect(a.SluiceError).not.toBe(b.SluiceError)
  })

  it('an error is a SluiceError of both', () => {
    const [a, b] = copies()
    const error = thrownBy(() => a.tokenBucket({ limit: 0, per: '1s' }))
    expect(error).not.toBeInstanceOf(b.SluiceError)
    expect(b.SluiceError.is(error)).toBe(true)
    expect(a.SluiceError.is(error)).toBe(true)
    for (const other of [new Error('no'), { code: 'SLUICE_COST' }, 'no', null, undefined]) {
      expect(b.SluiceError.is(other)).toBe(false)
    }
  })

  it.each([
    ['memoryStore', (a: Copy) => a.memoryStore()],
    ['compactStore', (a: Copy) => a.compactStore()],
    ['sharedMemoryStore', (a: Copy) => a.sharedMemoryStore({ maxKeys: 1_000 })],
  ] as const)('a %s and rules', (_name, storeOf) => {
    const [a, b] = copies()
    const store = storeOf(a)
    const rules = [
      a.tokenBucket({ limit: 5, per: '1h' }),
      b.fixedWindow({ limit: 3, per: '1h' }),
      a.calendarWindow({ limit: 100, per: 'day' }),
    ]
    const theirs = a.createLimiter(rules, { store, name: 'shared', share: true })
    const ours = b.createLimiter(rules, { store, name: 'shared', share: true })
    expect([ours.allow('alice'), theirs.allow('alice'), ours.allow('alice')]).toEqual(
      Array(3).fill(true),
    )
    expect([theirs.allow('alice'), ours.allow('alice')]).toEqual([false, false])
    expect(ours.check('alice')).toMatchObject({ allowed: false, rule: 'fixed-window' })
  })

  it('a store whose name is in use', () => {
    const [a, b] = copies()
    const store = a.memoryStore()
    const rule = a.tokenBucket({ limit: 1, per: '1s' })
    a.createLimiter(rule, { store, name: 'api' })
    const error = thrownBy(() => b.createLimiter(rule, { store, name: 'api' }))
    expect(b.SluiceError.is(error) && error.code).toBe('SLUICE_STORE_NAME')
  })

  it('a policy, with a tier that changes', () => {
    const [a, b] = copies()
    const rule = (limit: number) => a.fixedWindow({ limit, per: '1h' })
    const policy = a.createPolicy({
      tiers: { free: rule(2), pro: b.fixedWindow({ limit: 4, per: '1h' }) },
      defaultTier: 'free',
    })
    const limiter = b.createLimiter(policy)
    const all = () => Array.from({ length: 5 }, () => limiter.allow('alice'))
    expect(all()).toEqual([true, true, false, false, false])
    policy.setTier('alice', 'pro')
    expect(all()).toEqual([true, true, false, false, false])
  })

  it('rules, a policy and a store on Redis', async () => {
    const [a, b] = copies()
    const store = a.redisStore(redis.client, { prefix: `two:${_made}` })
    const each = b.tokenBucket({ limit: 2, per: '1h', by: 'user' })
    const rules = [each, a.slidingWindowLog({ limit: 3, per: '1h', by: 'global' })]
    const limiter = b.createLimiter(rules, { store, name: 'fields', timeoutMs: 10_000 })
    const users = ['alice', 'alice', 'alice', 'bob', 'carol']
    const decisions = []
    for (const user of users) decisions.push((await limiter.check({ user })).allowed)
    expect(decisions).toEqual([true, true, false, true, false])
    const cost = await limiter.check({ user: 'bob' }, 3).catch((error: unknown) => error)
    expect(b.SluiceError.is(cost) && cost.code).toBe('SLUICE_COST_EXCEEDS_CAPACITY')

    const policy = a.createPolicy({
      tiers: { free: each },
      tierBy: 'user',
      defaultTier: 'free',
      rules: a.fixedWindow({ limit: 100, per: '1h', by: 'global' }),
    })
    const tiered = b.createLimiter(policy, { store, name: 'tiers', timeoutMs: 10_000 })
    const permit = await tiered.tryAcquire({ user: 'alice' }, 2)
    expect([permit.allowed, (await tiered.check({ user: 'alice' })).allowed]).toEqual([true, false])
  })

  it('a store that fails', async () => {
    const [a, b] = copies()
    const client = new Redis({ port: 1, lazyConnect: true, enableOfflineQueue: false })
    client.on('error', () => {})
    const store = a.redisStore(client)
    const limiter = b.createLimiter(b.tokenBucket({ limit: 2, per: '1h' }), {
      store,
      onStoreFailure: 'closed',
    })
    expect(await limiter.check('alice')).toMatchObject({ allowed: false, source: 'closed' })
    const error = await limiter.reset('alice').catch((thrown: unknown) => thrown)
    expect(b.SluiceError.is(error) && error.code).toBe('SLUICE_STORE_UNAVAILABLE')
    // The drop-in reads the cause from the decision.
    const dropIn = b.sluiceStore({ store, name: 'drop-in', onStoreFailure: 'closed' })
    dropIn.init({ windowMs: 60_000 } as never)

    const why = await dropIn.increment('alice').catch((thrown: unknown) => thrown)
    expect(b.SluiceError.is(why) && why.code).toBe('SLUICE_STORE_UNAVAILABLE')
    expect(b.sluiceStore({ store }).prefix).toBe(a.sluiceStore({ store }).prefix)
    client.disconnect()
  })

  it('a limiter in the middleware of Express, which sends its policy', async () => {
    const [a, b] = copies()
    const limiter = a.createLimiter(a.tokenBucket({ limit: 2, per: '1h', name: 'api' }))
    const app = express().use(b.forExpress({ limiter, key: () => 'alice' }))
    const server = app.get('/', (_request, response) => void response.send('hello')).listen(0)
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    try {
      const responses = [await fetch(url), await fetch(url), await fetch(url)]
      expect(responses.map(({ status }) => status)).toEqual([200, 200, 429])
      expect(responses[0].headers.get('ratelimit-policy')).toBe('"api";q=2;w=3600')
    } finally {
      server.close()
    }
  })

  it('the decision about a request', async () => {
    const [a, b] = copies()
    const rules = a.tokenBucket({ limit: 2, per: '1h' })
    const handler = a.rateLimit({ rules, key: () => 'alice' })((request) =>
      Response.json(b.rateLimitOf(request)?.decision.remaining),
    )
    expect(await (await handler(new Request('http://localhost/'))).json()).toBe(1)
  })

  it('a limiter that throttles', async () => {
    const [a, b] = copies()
    const limiter = a.createLimiter(a.concurrency({ limit: 1, hold: '1m' }))
    let running = 0
    let most = 0
    const work = b.throttle(
      async () => {
        running += 1
        most = Math.max(most, running)
        await new Promise(setImmediate)
        running -= 1
      },
      { limiter },
    )
    await Promise.all([work(), work(), work()])
    expect(most).toBe(1)
  })
})

function thrownBy(act: () => unknown): unknown {
  try {
    act()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}
