import { describe, expect, expectTypeOf, it } from 'vitest'
import {
  type AnyLimiter,
  type AsyncLimiter,
  type AsyncStore,
  calendarWindow,
  concurrency,
  createLimiter,
  createPolicy,
  type Decision,
  type Entry,
  fixedWindow,
  type Limiter,
  memoryStore,
  type Store,
  tokenBucket,
  unlimited,
} from '../index.ts'
import { redisStore } from '../stores/redis/redis.ts'

const rule = tokenBucket({ limit: 10, per: '1m' })
const client = { call: async () => 'never asked' }
const code = (code: string) => expect.objectContaining({ code })

// `tsc --build` fails where a line under @ts-expect-error compiles.

describe('a limiter on a store that is chosen by the running program', () => {
  const url: string | undefined = undefined
  const made = () => {
    const store: Store | AsyncStore = url ? redisStore(client) : memoryStore()
    return createLimiter(rule, { store: store as Store | AsyncStore, timeoutMs: 100 })
  }

  it('has verbs to await, on whichever store', async () => {
    const limiter = made()
    expectTypeOf(limiter).toEqualTypeOf<AnyLimiter<string, number, never>>()
    expect((await limiter.check('alice')).remaining).toBe(9)
    expect(await limiter.checkMany([{ key: 'alice' }])).toHaveLength(1)
    const permit = await limiter.tryAcquire('alice')
    if (permit.allowed) await permit.settle(3)
    expect(await limiter.run('alice', (held) => held.allowed, { cost: 2 })).toBe(true)
    await limiter.charge('alice', 1)
    await limiter.block('bob', '1m')
    const entries: Entry[] = []
    for await (const entry of limiter.entries()) entries.push(entry)
    expect(entries).toHaveLength(2)
    expect(await limiter.size()).toBe(2)
    await limiter.close()
  })

  it('has no allow, and no promise for certain', () => {
    const limiter = made()
    // @ts-expect-error
    limiter.allow
    // @ts-expect-error
    expect(() => limiter.check('alice').then(() => {})).toThrow(TypeError)
  })

  it('is known better where the store is', () => {
    expectTypeOf(createLimiter(rule)).toEqualTypeOf<Limiter<string, number, never>>()
    const onRedis = createLimiter(rule, { store: redisStore(client) })
    expectTypeOf(onRedis).toEqualTypeOf<AsyncLimiter<string, number, never>>()
    expectTypeOf(onRedis.check('alice')).toEqualTypeOf<Promise<Decision>>()
  })

  it('was meant to have a store where it has options of one that fails', () => {
    // @ts-expect-error
    expect(() => createLimiter(rule, { onStoreFailure: 'closed' })).toThrow(code('SLUICE_OPTION'))
  })
})

describe('types refuse', () => {
  it('a duration that is none', () => {
    // @ts-expect-error
    expect(() => tokenBucket({ limit: 1, per: '1 minute' })).toThrow(code('SLUICE_DURATION'))
    // @ts-expect-error
    expect(() => concurrency({ limit: 1, hold: 'a minute' })).toThrow(code('SLUICE_DURATION'))
    // @ts-expect-error
    expect(() => calendarWindow({ limit: 1, per: 'minute' })).toThrow(code('SLUICE_DURATION'))
    // @ts-expect-error
    expect(() => createLimiter(rule).block('a', '1 hour')).toThrow(code('SLUICE_DURATION'))
    for (const per of ['1us', '250ms', '10s', '1m', '1h', '1d', 5] as const) {
      expect(() => createLimiter(rule).block('a', per)).not.toThrow()
    }
  })

  it('an option or a field that is misspelt or missing', () => {
    // @ts-expect-error
    expect(() => tokenBucket({ limit: 1, per: '1m', brust: 5 })).toThrow(code('SLUICE_OPTION'))
    // @ts-expect-error
    expect(() => createLimiter(rule, { nam: 'api' })).toThrow(code('SLUICE_OPTION'))
    const both = createLimiter([
      tokenBucket({ limit: 5, per: '1m', by: 'user' }),
      fixedWindow({ limit: 9, per: '1m', by: 'org', name: 'of the org' }),
    ])
    expect(both.check({ user: 'alice', org: 'acme' }).allowed).toBe(true)
    // @ts-expect-error
    expect(() => both.check({ user: 'alice', orgg: 'acme' })).toThrow(code('SLUICE_KEY'))
    // @ts-expect-error
    expect(() => both.check({ user: 'alice' })).toThrow(code('SLUICE_KEY'))
    // @ts-expect-error
    expect(() => both.check('alice')).toThrow(code('SLUICE_KEY'))
    // @ts-expect-error
    expect(() => createLimiter(rule).check({ ip: '::1' })).toThrow(code('SLUICE_KEY'))
    const key = { user: 'alice', org: 'acme' }
    // @ts-expect-error
    expect(() => both.check(key, { 'token-bucket': 1, org: 1 })).toThrow(code('SLUICE_COST'))
  })

  it('a tier that the policy does not have', () => {
    const unknown = code('SLUICE_TIER_UNKNOWN')
    const policy = createPolicy({ tiers: { free: rule, gold: unlimited() }, defaultTier: 'free' })
    const limiter = createLimiter(policy)
    policy.setTier('alice', 'gold')
    policy.setTier('alice', undefined)
    expect(limiter.check('alice', 1, { tier: 'gold' }).allowed).toBe(true)
    // @ts-expect-error
    expect(() => policy.setTier('alice', 'goldd')).toThrow(unknown)
    // @ts-expect-error
    expect(() => limiter.check('alice', 1, { tier: 'goldd' })).toThrow(unknown)
    // @ts-expect-error
    expect(() => limiter.checkMany([{ key: 'alice', tier: 'goldd' }])).toThrow(unknown)
    // @ts-expect-error
    expect(() => createPolicy({ tiers: { free: rule }, defaultTier: 'fre' })).toThrow(unknown)
    // @ts-expect-error
    expect(() => createLimiter(rule).check('a', 1, { tier: 'free' })).toThrow(code('SLUICE_OPTION'))
  })
})

describe('types accept', () => {
  it('any tier where the tiers are only known at run time', () => {
    const read: Record<string, typeof rule> = { free: rule }
    for (const tiers of [read, new Map(Object.entries(read))]) {
      const policy = createPolicy({ tiers, tierOf: () => null, defaultTier: 'free' })
      const tier: string = 'free'
      policy.setTier('alice', tier)
      expect(createLimiter(policy).check('alice', 1, { tier }).allowed).toBe(true)
    }
  })

  it('a limiter of any tiers for one of whatever tiers', () => {
    const policy = createPolicy({ tiers: { free: rule }, defaultTier: 'free' })
    const limiters: Limiter[] = [createLimiter(policy), createLimiter(rule)]
    expect(limiters.map((limiter) => limiter.allow('alice'))).toEqual([true, true])
  })

  it('tiers of a key with fields', () => {
    const policy = createPolicy({
      tierBy: 'org',
      tiers: { free: tokenBucket({ limit: 5, per: '1m', by: 'org' }) },
      rules: fixedWindow({ limit: 9, per: '1m', by: 'user', name: 'of the user' }),
      defaultTier: 'free',
    })
    const limiter = createLimiter(policy)
    expect(limiter.check({ org: 'acme', user: 'alice' }, 1, { tier: 'free' }).remaining).toBe(4)
    // @ts-expect-error
    expect(() => limiter.check({ org: 'acme' })).toThrow(code('SLUICE_KEY'))
  })
})
