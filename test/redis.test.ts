import { createHash } from 'node:crypto'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import {
  createLimiter,
  createPolicy,
  type Decision,
  defineAlgorithm,
  defineRule,
  fixedWindow,
  type Rule,
  slidingWindowLog,
  tokenBucket,
} from 'sluice'
import { redisStore } from 'sluice/redis'
import { storeSuite } from 'sluice/testing'
import { describe, expect, it } from 'vitest'
import { ownTwins } from '../packages/sluice/src/algorithms/lua/index.ts'
import type { RedisClient } from '../packages/sluice/src/stores/redis/client.ts'
import { decideScript } from '../packages/sluice/src/stores/redis/decide-script.ts'
import { CLOCK_LINE, swapScript } from '../packages/sluice/src/stores/redis/script.ts'
import { useRedis } from './redis/fixture.ts'
import { timedStore } from './redis/timed.ts'

const steps = Number(process.env.SLUICE_STEPS ?? 2_000)
const redis = useRedis()

describe('redisStore keeps the contract of stores:', () => {
  it('has only one line that reads the clock', () => {
    const script = decideScript(new Map())
    expect(script.split(CLOCK_LINE)).toHaveLength(2)
    // Other lines only compare expiries with that time.
    expect(script.replace(/local function expiry[\s\S]*?\nend/, '').match(/'TIME'/g)).toHaveLength(
      1,
    )
  })
  for (const { name, run } of storeSuite(() => timedStore(redis.client), {
    steps,
    evicts: false,
  })) {
    it(name, run, 60_000 + steps)
  }
})

describe('redisStore', () => {
  const rule = tokenBucket({ limit: 10, per: '10s' })
  const on = (client: RedisClient, name: string) =>
    createLimiter(rule, { store: redisStore(client), name, share: true })

  it('lets a row expire when it is fresh, rounded up, and repairs a lost expiry', async () => {
    const limiter = on(redis.client, 'expiry')
    const state = 'sl:expiry/alice'
    await limiter.check('alice', 4)
    const ttl = async () => redis.client.pttl(state)
    expect(await ttl()).toBeGreaterThan(3_900)
    expect(await ttl()).toBeLessThanOrEqual(4_001)
    await redis.client.persist(state)
    await limiter.check('alice')
    expect(await ttl()).toBeGreaterThan(4_800)
    expect(await redis.client.get(state)).toMatch(/^[\da-f]{13}:10\/10s$/)
    expect((await limiter.peek('alice')).remaining).toBe(5)
  })

  it('lets no row expire a millisecond early or late, for all ways of writing it', async () => {
    const { store, clock, prefix } = timedStore(redis.client)
    const tiers = {
      a: tokenBucket({ limit: 10, per: 1 }),
      b: tokenBucket({ limit: 5, per: 1 }),
      c: fixedWindow({ limit: 10, per: 1 }),
    }
    const policy = createPolicy({ tiers, defaultTier: 'a' })
    const limiter = createLimiter(policy, { store, timeoutMs: 5_000 })
    const startMs = clock.nowUs() / 1_000
    const expires = async (name: string) =>
      Number(await redis.client.call('PEXPIRETIME', `${prefix}/${name}`)) - startMs
    await limiter.check('alone')
    expect(await expires('alone')).toBe(1)
    await limiter.checkMany([{ key: 'whole', cost: 10 }, { key: 'part' }])
    expect(await expires('whole')).toBe(1)
    expect(await expires('part')).toBe(1)
    await limiter.charge('debtor', 11)
    expect(await expires('debtor')).toBe(2)
    // Carried over to gaps of 200 µs, and then refused, which writes nothing.
    expect((await limiter.check('debtor', 1, { tier: 'b' })).allowed).toBe(false)
    expect(await expires('debtor')).toBe(3)
    await limiter.block('blocked', 0.1)
    expect(await expires('blocked')).toBe(1)
    clock.advance(0.001)
    await limiter.check('window', 1, { tier: 'c' })
    expect(await expires('window')).toBe(2)
  })

  it('recovers from a flushed script cache, and counts the call once', async () => {
    const limiter = on(redis.client, 'flushed')
    await limiter.check('alice')
    await redis.client.script('FLUSH')
    expect((await limiter.check('alice')).remaining).toBe(8)
  })

  it('keeps used units when the limits change, on another node too', async () => {
    await on(redis.client, 'changed').check('alice', 4)
    const store = redisStore(redis.client)
    const larger = createLimiter(tokenBucket({ limit: 200, per: '10s' }), {
      store,
      name: 'changed',
      share: true,
    })
    expect((await larger.check('alice')).remaining).toBe(195)
    expect((await on(redis.client, 'changed').peek('alice')).remaining).toBe(5)
  })

  it('keeps spends of another node while limits are carried over', async () => {
    const make = (client: RedisClient, limit: number) =>
      createLimiter(tokenBucket({ limit, per: '1h' }), {
        ...{ store: redisStore(client), name: 'carried over', share: true, timeoutMs: 5_000 },
      })
    await make(redis.client, 10).check('alice', 4)
    const there = make(redis.client, 100)
    const swap = createHash('sha1').update(swapScript(CLOCK_LINE)).digest('hex')
    let swaps = 0
    const slow = {
      async call(command: string, args: string[]) {
        swaps += args[0] === swap ? 1 : 0
        if (args[0] === swap && swaps === 1) await there.check('alice', 50)
        return redis.client.call(command, args)
      },
    }
    const limiter = make(slow, 100)
    expect((await limiter.check('alice')).remaining).toBe(45)
    // The row of the lost swap is read again, and needs no second swap.
    expect([swaps, limiter.stats().contended]).toEqual([1, 1])
  })

  it('lists hostile keys, and clears only its own', async () => {
    const [limiter, other] = [on(redis.client, 'listed'), on(redis.client, 'listed too')]
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

  it('never treats the name of a limiter as a pattern', async () => {
    const others = ['ab', 'a*', 'a?', '[ab]', 'a^', 'a\\b', 'b']
    for (const name of others) {
      const limiters = new Map(others.map((each) => [each, on(redis.client, each)]))
      for (const limiter of limiters.values()) await limiter.check('alice')
      await limiters.get(name)?.clear()
      const sizes = await Promise.all(Array.from(limiters.values(), (limiter) => limiter.size()))
      expect([name, ...sizes]).toEqual([name, ...others.map((each) => (each === name ? 0 : 1))])
    }
  })

  it('admits exactly the limit from many clients at once', async () => {
    const clients = Array.from({ length: 4 }, () => new Redis(redis.server.port, '127.0.0.1'))
    const limiters = clients.map((each) => on(each, 'fleet'))
    const all = await Promise.all(
      Array.from({ length: 200 }, (_, i) => limiters[i % 4].check('alice')),
    )
    expect(all.filter(({ allowed }) => allowed)).toHaveLength(10)
    for (const each of clients) each.disconnect()
  })

  it('works with node-redis as well', async () => {
    const other = createClient({ url: `redis://127.0.0.1:${redis.server.port}` })
    await other.connect()
    const limiter = on(other, 'node-redis')
    await limiter.check('alice', 3)
    expect(
      (await limiter.checkMany([{ key: 'alice' }, { key: 'bob', cost: 2 }])).map(remaining),
    ).toEqual([6, 8])
    expect((await on(redis.client, 'node-redis').peek('alice')).remaining).toBe(6)
    await other.close()
  })

  it('refuses two rules of one name, and separates rules of two algorithms', async () => {
    const store = redisStore(redis.client)
    expect(() => createLimiter([rule, tokenBucket({ limit: 5, per: '1s' })], { store })).toThrow(
      /two rules of one limiter/,
    )
    const tiers = {
      a: tokenBucket({ limit: 6, per: '1h', name: 'api' }),
      b: slidingWindowLog({ limit: 6, per: '1h', name: 'api' }),
    }
    const policy = createPolicy({ tiers, defaultTier: 'a' })
    const limiter = createLimiter(policy, { store, name: 'two algorithms', timeoutMs: 5_000 })
    let admitted = 0
    for (let i = 0; i < 40; i += 1) {
      const tier = i % 2 === 0 ? 'a' : 'b'
      if ((await limiter.check('alice', 1, { tier })).allowed) admitted += 1
    }
    expect(admitted).toBe(12)
    await limiter.reset('alice')
    expect((await limiter.peek('alice', 1, { tier: 'b' })).remaining).toBe(6)
  })

  it('starts with a fresh state if a name gets another algorithm, without errors', async () => {
    const make = (made: Rule) =>
      createLimiter(made, {
        store: redisStore(redis.client),
        name: 'changed algorithm',
        share: true,
      })
    await make(tokenBucket({ limit: 6, per: '1h', name: 'api' })).check('alice', 4)
    const log = make(slidingWindowLog({ limit: 6, per: '1h', name: 'api' }))
    expect(await log.check('alice')).toMatchObject({ remaining: 5, source: 'store' })
    expect(await log.check('alice')).toMatchObject({ remaining: 4, source: 'store' })
  })

  it('answers a long checkMany in order, also after the limits have changed', async () => {
    const store = redisStore(redis.client)
    const tiers = {
      a: tokenBucket({ limit: 10, per: '1h' }),
      b: tokenBucket({ limit: 150, per: '1h' }),
    }
    const limiter = createLimiter(createPolicy({ tiers }), {
      store,
      name: 'long',
      timeoutMs: 5_000,
    })
    await limiter.check('alice', 1, { tier: 'a' })
    const all = await limiter.checkMany(
      Array.from({ length: 384 }, () => ({ key: 'alice', tier: 'b' })),
    )
    expect(all.map(({ allowed }) => allowed)).toEqual(all.map((_, i) => i < 149))
  })

  it('lists all keys in Redis, or rejects', async () => {
    let isBroken = false
    const shaky = {
      call(command: string, args: string[]) {
        if (isBroken && command.startsWith('EVAL')) return Promise.reject(new Error('no scripts'))
        return redis.client.call(command, args)
      },
    }
    const limiter = on(shaky, 'shown')
    await limiter.check('alice', 10)
    isBroken = true
    const list = async () => {
      const keys: string[] = []
      for await (const { key } of limiter.entries()) keys.push(key)
      return keys
    }
    await expect(list()).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })
  })

  it('sends no call without a deadline, not even the first', async () => {
    const deadlines: number[] = []
    const watched = {
      call(command: string, args: string[]) {
        if (command === 'EVALSHA') deadlines.push(Number(args[2 + Number(args[1])]))
        return redis.client.call(command, args)
      },
    }
    await on(watched, 'first').block('alice', 1_000)
    await on(watched, 'first too').check('alice')
    expect(deadlines.every((us) => Math.abs(us / 1_000 - Date.now()) < 10_000)).toBe(true)
    expect(deadlines).toHaveLength(2)
  })

  it('leaves no timer behind after calls have waited in the queue', async () => {
    const limiter = createLimiter(tokenBucket({ limit: 100, per: '1s', burst: 1 }), {
      store: redisStore(redis.client),
      name: 'waited',
    })
    const timers = () =>
      process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
    const before = timers()
    const wait = () => limiter.wait('alice', 1, { maxWaitMs: '1h' })
    await Promise.all(Array.from({ length: 5 }, wait))
    expect(timers()).toBeLessThanOrEqual(before + 1)
  })

  it('refuses anything but a client', () => {
    expect(() => redisStore(Redis as never)).toThrow(/valkey-glide/)
    expect(() => redisStore({} as never)).toThrow(/ioredis, node-redis, valkey-glide or @upstash/)
  })

  it('passes a calendar period to a twin as r.period', async () => {
    const lua = `
local t = (function() ${ownTwins.get('fixed-window')} end)()
local wait = t.wait
function t.wait(s, r, cost, now)
  if r.period == 'minute' and r.per == 60000000 then return wait(s, r, cost, now) end
  error('no period')
end
return t`
    const periods = { minute: 60_000_000 }
    const own = defineAlgorithm({ ...fixedWindow.algorithm, name: 'by-the-minute', periods, lua })
    const one = defineRule(own, { limit: 1, per: 'minute' })
    const limiter = createLimiter(one, { store: redisStore(redis.client), name: 'word' })
    const decisions = [await limiter.check('alice'), await limiter.check('alice')]
    expect(decisions.map(({ allowed, source }) => [allowed, source])).toEqual([
      [true, 'store'],
      [false, 'store'],
    ])
  })
})

const remaining = (decision: Decision) => decision.remaining
