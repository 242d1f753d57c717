import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { createLimiter, type Decision, defineAlgorithm, defineRule, tokenBucket } from 'sluice'
import { redisStore } from 'sluice/redis'
import { storeSuite } from 'sluice/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RedisClient } from '../packages/sluice/src/stores/redis/client.ts'
import { CLOCK_LINE, decideScript } from '../packages/sluice/src/stores/redis/script.ts'
import { type RedisServer, startRedis } from './redis/server.ts'
import { timedStore } from './redis/timed.ts'

const steps = Number(process.env.SLUICE_STEPS ?? 2_000)
let server: RedisServer
let client: Redis

beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.port, '127.0.0.1')
}, 120_000)
afterAll(async () => {
  client.disconnect()
  await server.stop()
})

describe('redisStore keeps the contract of stores:', () => {
  it('has one line that reads the clock', () => {
    const script = decideScript(new Map())
    expect(script.split(CLOCK_LINE)).toHaveLength(2)
    expect(script.match(/'TIME'/g)).toHaveLength(1)
  })
  for (const { name, run } of storeSuite(() => timedStore(client), { steps, evicts: false })) {
    it(name, run, 60_000 + steps)
  }
})

describe('redisStore', () => {
  const rule = tokenBucket({ limit: 10, per: '10s' })
  const on = (client: RedisClient, name: string) =>
    createLimiter(rule, { store: redisStore(client), name })

  it('lets a state expire when it is fresh, rounded up, and repairs a lost expiry', async () => {
    const limiter = on(client, 'expiry')
    const state = 'slu:expiry:{alice}:token-bucket'
    await limiter.check('alice', 4)
    const ttl = async () => client.pttl(state)
    expect(await ttl()).toBeGreaterThan(3_900)
    expect(await ttl()).toBeLessThanOrEqual(4_001)
    await client.persist(state)
    await limiter.check('alice')
    expect(await ttl()).toBeGreaterThan(4_800)
    expect(await client.object('ENCODING', state)).toBe('int')
    expect((await limiter.peek('alice')).remaining).toBe(5)
  })

  it('recovers from a flushed script cache, and counts the call once', async () => {
    const limiter = on(client, 'flushed')
    await limiter.check('alice')
    await client.script('FLUSH')
    expect((await limiter.check('alice')).remaining).toBe(8)
  })

  it('goes on with what was used when the limits change, on another node too', async () => {
    await on(client, 'changed').check('alice', 4)
    const store = redisStore(client)
    const larger = createLimiter(tokenBucket({ limit: 200, per: '10s' }), {
      store,
      name: 'changed',
    })
    expect((await larger.check('alice')).remaining).toBe(195)
    expect((await on(client, 'changed').peek('alice')).remaining).toBe(5)
  })

  it('lists keys, whatever is in them, and clears its own only', async () => {
    const [limiter, other] = [on(client, 'listed'), on(client, 'listed too')]
    const keys = ['alice', '}x', '{}', '*', 'a:b', '\ud800', '\udc00', '%7b', 'é', '😀']
    for (const key of keys) await limiter.check(key)
    await other.check('alice')
    const listed: string[] = []
    for await (const { key } of limiter.entries()) listed.push(key)
    expect(listed.sort()).toEqual([...keys].sort())
    await limiter.clear()
    expect(await limiter.size()).toBe(0)
    expect((await other.peek('alice')).remaining).toBe(9)
  })

  it('admits the limit and not one more from many clients at once', async () => {
    const clients = Array.from({ length: 4 }, () => new Redis(server.port, '127.0.0.1'))
    const limiters = clients.map((each) => on(each, 'fleet'))
    const all = await Promise.all(
      Array.from({ length: 200 }, (_, i) => limiters[i % 4].check('alice')),
    )
    expect(all.filter(({ allowed }) => allowed)).toHaveLength(10)
    for (const each of clients) each.disconnect()
  })

  it('works with node-redis as well', async () => {
    const other = createClient({ url: `redis://127.0.0.1:${server.port}` })
    await other.connect()
    const limiter = on(other, 'node-redis')
    await limiter.check('alice', 3)
    expect(
      (await limiter.checkMany([{ key: 'alice' }, { key: 'bob', cost: 2 }])).map(remaining),
    ).toEqual([6, 8])
    expect((await on(client, 'node-redis').peek('alice')).remaining).toBe(6)
    await other.close()
  })

  it('refuses what is no client, and an algorithm without a twin', () => {
    expect(() => redisStore({} as never)).toThrow(/ioredis, node-redis or valkey-glide/)
    const own = defineRule(defineAlgorithm({ ...rule.algorithm, name: 'own' }), {
      limit: 1,
      per: '1s',
    })
    expect(() => createLimiter(own, { store: redisStore(client) })).toThrow(/no Lua twin/)
  })
})

const remaining = (decision: Decision) => decision.remaining
