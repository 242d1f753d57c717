import { describe, expect, it } from 'vitest'
import {
  createLimiter,
  createPolicy,
  fixedWindow,
  gcra,
  memoryStore,
  slidingWindowLog,
  tokenBucket,
  unlimited,
} from '../index.ts'
import { manualClock } from '../testing/index.ts'

const tiers = {
  free: tokenBucket({ limit: 10, per: '1m' }),
  pro: [tokenBucket({ limit: 100, per: '1m' }), fixedWindow({ limit: 1_000, per: '1d' })],
  internal: unlimited(),
}
const withCode = (code: string) => expect.objectContaining({ code })

describe('a policy', () => {
  it('asks setTier, then tierOf, then the default, and a call’s own tier before all of them', () => {
    const policy = createPolicy({
      tiers,
      tierOf: (key) => (key.startsWith('staff') ? 'internal' : undefined),
      defaultTier: 'free',
    })
    const limiter = createLimiter(policy, { clock: manualClock() })
    expect(limiter.check('stranger').capacity).toBe(10)
    expect(limiter.check('staff:1').capacity).toBe(Number.POSITIVE_INFINITY)
    policy.setTier('staff:1', 'pro')
    expect(policy.tierOf('staff:1')).toBe('pro')
    expect(limiter.check('staff:1').capacity).toBe(100)
    expect(limiter.check('staff:1', 1, { tier: 'free' }).capacity).toBe(10)
    policy.setTier('staff:1', undefined)
    expect(limiter.check('staff:1').remaining).toBe(Number.POSITIVE_INFINITY)
  })

  it('treats null as no tier', () => {
    const policy = createPolicy({ tiers, tierOf: () => null as never, defaultTier: 'free' })
    const limiter = createLimiter(policy)
    policy.setTier('a', 'pro')
    expect(limiter.check('a', 1, { tier: null } as never).capacity).toBe(100)
    policy.setTier('a', null as never)
    expect(limiter.check('a').capacity).toBe(10)
    policy.setOverride('a', tokenBucket({ limit: 7, per: '1s' }))
    policy.setOverride('a', null as never)
    expect(limiter.check('a').capacity).toBe(10)
  })

  it('distinguishes an unknown tier from an asynchronous tierOf', () => {
    const policy = createPolicy({ tiers, tierOf: async () => 'free' } as never)
    expect(() => policy.tierOf('a') && policy.rulesFor('a')).toThrow(/must answer at once/)
    expect(() => createPolicy({ tiers, defaultTier: 5 as never })).toThrow(
      /there is no tier 5\. The policy has free, pro, internal\.$/,
    )
  })

  it('may be replaced by one with other rules, and used units stay used', () => {
    const store = memoryStore({ clock: manualClock() })
    const of = (free: ReturnType<typeof gcra>[]) =>
      createLimiter(createPolicy({ tiers: { free }, defaultTier: 'free' }), { store, share: true })
    of([tokenBucket({ limit: 10, per: '1m' })]).check('alice', 8)
    const again = of([tokenBucket({ limit: 9, per: '1m' }), gcra({ limit: 5, per: '1h' })])
    expect(again.peek('alice').rules.map(({ remaining }) => remaining)).toEqual([1, 5])
    expect(() => createLimiter(gcra({ limit: 5, per: '1h' }), { store, share: true })).toThrow(
      withCode('SLUICE_STORE_MISMATCH'),
    )
  })

  it('lets an override replace the rules of any tier until it is removed', () => {
    const policy = createPolicy({
      tiers,
      defaultTier: 'free',
      overrides: { acme: tokenBucket({ limit: 500, per: '1m' }) },
    })
    const limiter = createLimiter(policy, { clock: manualClock() })
    expect(limiter.check('acme', 50).remaining).toBe(450)
    policy.setOverride('acme', undefined)
    expect(limiter.peek('acme')).toMatchObject({ allowed: false, remaining: 0 })
    policy.setOverride('acme', [
      tokenBucket({ limit: 60, per: '1m' }),
      gcra({ limit: 3, per: '1s' }),
    ])
    expect(limiter.peek('acme').rules.map(({ rule, remaining }) => [rule, remaining])).toEqual([
      ['token-bucket', 10],
      ['gcra', 3],
    ])
  })

  it('widens the rows of a store when an override brings rules it has not seen', () => {
    const policy = createPolicy({ tiers, defaultTier: 'free' })
    const limiter = createLimiter(policy, { clock: manualClock() })
    for (let i = 0; i < 3_000; i += 1) limiter.check(`key ${i}`, (i % 9) + 1)
    // A gap that is no whole microsecond needs a second cell; the log a list.
    policy.setOverride('key 7', [
      tokenBucket({ limit: 7, per: '1m', burst: 100 }),
      slidingWindowLog({ limit: 4, per: '1m' }),
    ])
    limiter.check('key 7', 3)
    expect(limiter.peek('key 7').rules.map(({ remaining }) => remaining)).toEqual([89, 1])
    const wrong = Array.from({ length: 3_000 }, (_, i) => i).filter(
      (i) => i !== 7 && limiter.peek(`key ${i}`).remaining !== 10 - ((i % 9) + 1),
    )
    expect(wrong).toEqual([])
  })

  it('neither punishes an upgrade nor rewards switching back and forth', () => {
    const clock = manualClock()
    const slow = tokenBucket({ limit: 1, per: '1d', burst: 10 })
    const fast = tokenBucket({ limit: 10, per: '1s' })
    const policy = createPolicy({ tiers: { slow, fast }, defaultTier: 'slow' })
    const limiter = createLimiter(policy, { clock })
    limiter.check('a', 10)
    policy.setTier('a', 'fast')
    // Refused or not, the first request under the new tier starts the new refill.
    expect(limiter.check('a')).toMatchObject({ allowed: false, retryAfterMs: 100 })
    for (let i = 0; i < 100; i += 1) {
      policy.setTier('a', i % 2 ? 'fast' : 'slow')
      expect(limiter.check('a').allowed).toBe(false)
    }
    clock.advance(100)
    expect(limiter.check('a').allowed).toBe(true)
  })

  it('keeps the used units of an inactive rule until it is active again', () => {
    const clock = manualClock()
    const policy = createPolicy({ tiers, defaultTier: 'pro' })
    const limiter = createLimiter(policy, { clock })
    limiter.check('a', 7)
    policy.setTier('a', 'free')
    limiter.check('a', 1)
    policy.setTier('a', 'pro')
    expect(limiter.peek('a').rules.map(({ remaining }) => remaining)).toEqual([92, 993])
  })

  it('separates the states of rules with one name and different algorithms', () => {
    const policy = createPolicy({
      tiers: {
        one: tokenBucket({ limit: 5, per: '1m', name: 'api' }),
        two: fixedWindow({ limit: 5, per: '1m', name: 'api' }),
      },
    })
    const limiter = createLimiter(policy, { clock: manualClock() })
    limiter.check('a', 5, { tier: 'one' })
    expect(limiter.peek('a', 1, { tier: 'two' }).remaining).toBe(5)
    expect(limiter.peek('a', 1, { tier: 'one' }).remaining).toBe(0)
  })

  it('changes nothing when it is only peeked at under another tier', () => {
    const clock = manualClock()
    const policy = createPolicy({
      tiers: {
        free: [fixedWindow({ limit: 10, per: '1h' }), slidingWindowLog({ limit: 20, per: '1h' })],
        pro: [fixedWindow({ limit: 100, per: '1s' }), slidingWindowLog({ limit: 99, per: '1s' })],
      },
      defaultTier: 'free',
    })
    const limiter = createLimiter(policy, { clock })
    limiter.check('a', 10)
    const before = limiter.peek('a')
    expect(limiter.peek('a', 1, { tier: 'pro' }).remaining).toBe(89)
    expect(limiter.peek('a')).toEqual(before)
    clock.advance(1_000)
    expect(limiter.peek('a', 10).allowed).toBe(false)
  })

  it('frees nothing by a switch to a window aligned to the clock', () => {
    const clock = manualClock(1_767_225_600_999_000)
    const policy = createPolicy({
      tiers: {
        own: fixedWindow({ limit: 10, per: '1h' }),
        clock: fixedWindow({ limit: 10, per: '1s', align: 'clock' }),
      },
      defaultTier: 'own',
    })
    const limiter = createLimiter(policy, { clock })
    limiter.check('a', 10)
    limiter.check('a', 1, { tier: 'clock' })
    expect(limiter.peek('a').retryAfterMs).toBe(3_600_000)
  })

  it('enforces the wait it announced to a downgraded key whose row is gone', () => {
    const clock = manualClock()
    const policy = createPolicy({
      tiers: {
        pro: tokenBucket({ limit: 100, per: '1s' }),
        free: tokenBucket({ limit: 10, per: '100s' }),
      },
      defaultTier: 'free',
    })
    const limiter = createLimiter(policy, { store: memoryStore({ clock, maxKeys: 1 }) })
    policy.setTier('a', 'pro')
    limiter.check('a', 100)
    policy.setTier('stranger', 'pro')
    limiter.charge('stranger', 1)
    policy.setTier('a', undefined)
    expect(limiter.check('a').retryAfterMs).toBe(910_000)
    clock.advance(909_999.999)
    expect(limiter.allow('a')).toBe(false)
    clock.advance(0.001)
    expect(limiter.allow('a')).toBe(true)
  })

  it('resets a key in all its tiers, also in an over-full store', () => {
    const clock = manualClock()
    const policy = createPolicy({
      tiers: { free: tiers.free, pro: tiers.pro },
      defaultTier: 'free',
    })
    const limiter = createLimiter(policy, { store: memoryStore({ clock, maxKeys: 2 }) })
    for (let i = 0; i < 9; i += 1) limiter.charge(`key ${i}`, 3, { tier: 'pro' })
    limiter.reset('a')
    expect(limiter.peek('a', 1, { tier: 'pro' }).rules.map(({ remaining }) => remaining)).toEqual([
      100, 1_000,
    ])
    expect(limiter.peek('a').remaining).toBe(10)
  })

  it('blocks, resets and lists keys whose tier only comes with the calls', () => {
    const policy = createPolicy({ tiers })
    const limiter = createLimiter(policy, { clock: manualClock() })
    limiter.check('a', 2, { tier: 'pro' })
    limiter.block('b', '1h')
    const list = [...limiter.entries()]
    expect(list.map(({ key, decision }) => [key, decision.capacity, decision.source])).toEqual([
      ['a', 100, 'store'],
      ['b', 10, 'blocked'],
    ])
    limiter.unblock('b')
    limiter.reset('a')
    expect(limiter.size()).toBe(0)
  })

  it('lists a key under the tier it was last used with, before the default', () => {
    const limiter = createLimiter(createPolicy({ tiers, defaultTier: 'free' }), {
      clock: manualClock(),
    })
    limiter.check('a', 30, { tier: 'pro' })
    expect([...limiter.entries()][0].decision).toMatchObject({ allowed: true, remaining: 70 })
  })

  it('explains what to do about an asynchronous tierOf', () => {
    const policy = createPolicy({ tiers, tierOf: (async () => 'free') as never })
    expect(() => createLimiter(policy).check('a')).toThrow(/must answer at once/)
  })

  it('refuses tiers it does not have, and keys without one', () => {
    const policy = createPolicy({ tiers, tierOf: () => 'platinum' })
    const limiter = createLimiter(policy)
    expect(() => limiter.check('a')).toThrow(withCode('SLUICE_TIER_UNKNOWN'))
    expect(() => limiter.check('a', 1, { tier: '__proto__' as never })).toThrow(
      withCode('SLUICE_TIER_UNKNOWN'),
    )
    expect(() => policy.setTier('a', 'gold' as never)).toThrow(withCode('SLUICE_TIER_UNKNOWN'))
    expect(() => createLimiter(createPolicy({ tiers })).check('a')).toThrow(
      withCode('SLUICE_TIER_UNKNOWN'),
    )
    expect(() => createPolicy({ tiers, defaultTier: 'gold' as never })).toThrow(
      withCode('SLUICE_TIER_UNKNOWN'),
    )
  })

  it.each([
    [undefined, 'SLUICE_OPTION'],
    [{}, 'SLUICE_OPTION'],
    [{ tiers: { a: [] } }, 'SLUICE_OPTION'],
    [{ tiers: { a: { limit: 1 } } }, 'SLUICE_OPTION'],
    [{ tiers, tierof: () => 'free' }, 'SLUICE_OPTION'],
    [{ tiers, tierOf: 'free' }, 'SLUICE_OPTION'],
    [{ tiers, overrides: { '': unlimited() } }, 'SLUICE_KEY'],
    [{ tiers, overrides: null }, 'SLUICE_OPTION'],
    [{ tiers, overrides: new Set() }, 'SLUICE_OPTION'],
    [{ tiers: [] }, 'SLUICE_OPTION'],
  ])('refuses %o', (options, code) => {
    expect(() => createPolicy(options as never)).toThrow(withCode(code))
  })
})
