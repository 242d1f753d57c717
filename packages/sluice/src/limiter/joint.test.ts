import { describe, expect, it } from 'vitest'
import {
  compactStore,
  createLimiter,
  createPolicy,
  fixedWindow,
  gcra,
  leakyBucket,
  memoryStore,
  type Store,
  tokenBucket,
  unlimited,
} from '../index.ts'
import { sharedMemoryStore } from '../stores/shared-memory/shared-memory.ts'
import { type ManualClock, manualClock } from '../testing/index.ts'

const stores: Record<string, (clock: ManualClock) => Store> = {
  memoryStore: (clock) => memoryStore({ clock }),
  compactStore: (clock) => compactStore({ clock }),
  sharedMemoryStore: (clock) => sharedMemoryStore({ clock, maxKeys: 1_000 }),
}

const rules = [
  tokenBucket({ limit: 3, per: '3s', by: 'user', name: 'requests' }),
  tokenBucket({ limit: 1_000, per: '1m', by: 'org', name: 'tokens' }),
  fixedWindow({ limit: 5, per: '1s', by: 'global', name: 'everyone' }),
] as const

describe.each(Object.entries(stores))('rules of several fields on %s', (_name, make) => {
  const made = () => {
    const clock = manualClock()
    return { clock, limiter: createLimiter(rules, { store: make(clock) }) }
  }

  it('charges no rule when one refuses', () => {
    const { limiter } = made()
    for (let i = 0; i < 3; i += 1) expect(limiter.allow({ user: 'a', org: 'x' })).toBe(true)
    const refused = limiter.check({ user: 'a', org: 'x' })
    expect(refused).toMatchObject({ allowed: false, rule: 'requests', retryAfterMs: 1_000 })
    expect(refused.rules.map(({ remaining }) => remaining)).toEqual([0, 997, 2])
    expect(limiter.allow({ user: 'b', org: 'x' })).toBe(true)
    expect(limiter.allow({ user: 'c', org: 'x' })).toBe(true)
    expect(limiter.check({ user: 'd', org: 'y' })).toMatchObject({
      allowed: false,
      rule: 'everyone',
    })
    expect(limiter.peek({ user: 'd', org: null }).rules).toHaveLength(2)
  })

  it('spends its own units for each rule', () => {
    const { limiter } = made()
    const cost = { requests: 1, tokens: 400, everyone: 1 }
    expect(limiter.check({ user: 'a', org: 'x' }, cost).rules).toMatchObject([
      { rule: 'requests', remaining: 2 },
      { rule: 'tokens', remaining: 600 },
      { rule: 'everyone', remaining: 4 },
    ])
    expect(limiter.allow({ user: 'b', org: 'x' }, cost)).toBe(true)
    const refused = limiter.check({ user: 'c', org: 'x' }, cost)
    expect(refused).toMatchObject({ allowed: false, rule: 'tokens', capacity: 1_000 })
    expect(refused.remaining).toBe(200)
    expect(limiter.peek({ user: 'c', org: null }).rules[0].remaining).toBe(3)
  })

  it('switches the rules of a null field off', () => {
    const { limiter } = made()
    for (let i = 0; i < 5; i += 1) limiter.check({ user: null, org: 'x' })
    expect(limiter.check({ user: 'a', org: 'x' })).toMatchObject({
      rule: 'everyone',
      allowed: false,
    })
    expect(limiter.peek({ user: 'a', org: null }).rules.map(({ rule }) => rule)).toEqual([
      'requests',
      'everyone',
    ])
  })

  it('blocks, unblocks and resets a part of a key', () => {
    const { limiter, clock } = made()
    limiter.block({ org: 'x' }, '1h')
    expect(limiter.check({ user: 'a', org: 'x' })).toMatchObject({
      source: 'blocked',
      remaining: 0,
    })
    expect(limiter.allow({ user: 'a', org: 'y' })).toBe(true)
    limiter.unblock({ org: 'x' })
    expect(limiter.allow({ user: 'a', org: 'x' })).toBe(true)
    limiter.allow({ user: 'a', org: 'x' })
    expect(limiter.allow({ user: 'a', org: 'x' })).toBe(false)
    limiter.reset({ user: 'a' })
    expect(limiter.allow({ user: 'a', org: 'x' })).toBe(true)
    clock.advance(60_000)
    expect(limiter.size()).toBe(0)
  })

  it('gives a permit, and refunds unused units', () => {
    const { limiter } = made()
    const key = { user: 'a', org: 'x' }
    const permit = limiter.tryAcquire(key, { requests: 1, tokens: 800, everyone: 1 })
    if (!permit.allowed) throw new Error('refused')
    permit.settle({ requests: 1, tokens: 300, everyone: 1 })
    permit.cancel()
    expect(limiter.peek(key).rules.map(({ remaining }) => remaining)).toEqual([2, 700, 4])
    const other = limiter.tryAcquire(key, { requests: 1, tokens: 700, everyone: 1 })
    if (!other.allowed) throw new Error('refused')
    other.cancel()
    expect(limiter.peek(key).rules.map(({ remaining }) => remaining)).toEqual([2, 700, 4])
  })
})

describe('a limiter whose rules have fields', () => {
  const limiter = createLimiter(rules)

  it.each([
    ['a text', 'alice', /must be an object with `user`, `org`, got "alice"/],
    ['a field that is missing', { user: 'a' }, /lacks the field "org"/],
    ['an undefined field', { user: undefined, org: 'x' }, /lacks the field "user"/],
    ['a misspelt field', { usr: 'a', org: 'x' }, /has no field "usr"; it has `user`, `org`/],
    ['global, which is no field', { user: 'a', org: 'x', global: 'y' }, /has no field "global"/],
    ['nothing but null', { user: null, org: null }, /must have a field that is not null/],
    ['an empty text', { user: '', org: 'x' }, /a key must be a string of 1 to/],
  ])('refuses %s', (_what, key, message) => {
    expect(() => limiter.check(key as never)).toThrow(
      expect.objectContaining({ code: 'SLUICE_KEY', message: expect.stringMatching(message) }),
    )
  })

  it('refuses costs of rules that it does not have, or that are missing', () => {
    const key = { user: 'a', org: 'x' }
    const wrong = { requests: 1, tokens: 1, everyone: 1, tockens: 1 } as never
    expect(() => limiter.check(key, wrong)).toThrow(/no rule is called "tockens"/)
    expect(() => limiter.check(key, { requests: 1, tokens: 1 } as never)).toThrow(
      /rule "everyone" is missing/,
    )
    expect(() => limiter.check(key, { requests: 1, tokens: -1, everyone: 1 })).toThrow(
      expect.objectContaining({ code: 'SLUICE_COST' }),
    )
    expect(() => limiter.check(key, { requests: 4, tokens: 1, everyone: 1 })).toThrow(
      /a cost of 4 can never pass rule "requests"/,
    )
  })

  it('takes no rule without a field beside others', () => {
    expect(() => createLimiter([rules[0], gcra({ limit: 1, per: '1s' })])).toThrow(
      /rule "gcra" has no `by`, but others have/,
    )
  })

  it('does not compile with a misspelt field or rule', () => {
    const key = { user: 'a', org: 'x' }
    // @ts-expect-error: `usr` is no field.
    expect(() => limiter.check({ usr: 'a', org: 'x' })).toThrow()
    // @ts-expect-error: `tockens` is no rule.
    expect(() => limiter.check(key, { requests: 1, tockens: 1, everyone: 1 })).toThrow()
    // @ts-expect-error: the key is an object.
    expect(() => limiter.check('a')).toThrow()
  })

  it('lists parts of keys', () => {
    const listing = createLimiter(rules, { clock: manualClock() })
    listing.check({ user: 'a', org: 'x' })
    const entries = [...listing.entries()].map(({ by, key }) => [by, key])
    expect(entries).toEqual([
      ['user', 'a'],
      ['org', 'x'],
      ['global', 'global'],
    ])
  })

  it('has tiers by one field', () => {
    const policy = createPolicy({
      tierBy: 'user',
      defaultTier: 'free',
      tiers: {
        free: tokenBucket({ limit: 1, per: '1m', by: 'user' }),
        internal: unlimited({ by: 'user' }),
      },
      rules: fixedWindow({ limit: 3, per: '1m', by: 'global' }),
    })
    const tiered = createLimiter(policy, { clock: manualClock() })
    expect(tiered.allow({ user: 'a' })).toBe(true)
    expect(tiered.allow({ user: 'a' })).toBe(false)
    policy.setTier('a', 'internal')
    expect(tiered.check({ user: 'a' }).rules.map(({ rule }) => rule)).toEqual([
      'unlimited',
      'fixed-window',
    ])
    expect(tiered.allow({ user: 'b' })).toBe(true)
    expect(tiered.check({ user: 'c' })).toMatchObject({ allowed: false, rule: 'fixed-window' })
    // @ts-expect-error: `org` is no field of the policy.
    expect(() => tiered.check({ org: 'c' })).toThrow()
  })

  it('refuses leaky buckets on stores that spend from rows one by one', () => {
    const slots = [
      leakyBucket({ limit: 1, per: '1s', by: 'user' }),
      gcra({ limit: 1, per: '1s', by: 'org' }),
    ]
    expect(() => createLimiter(slots, { store: sharedMemoryStore({ maxKeys: 10 }) })).toThrow(
      expect.objectContaining({ code: 'SLUICE_RULE_UNSUPPORTED' }),
    )
    expect(
      createLimiter(slots, { clock: manualClock() }).check({ user: 'a', org: 'x' }),
    ).toMatchObject({ allowed: true })
  })
})

it.each(Object.entries(stores))(
  'a refusal carries rows over to new limits on %s',
  (_name, make) => {
    const clock = manualClock()
    const store = make(clock)
    const by = 'user'
    const before = createLimiter(fixedWindow({ limit: 5, per: '5ms', by }), { store })
    before.charge({ user: 'a' }, 5)
    before.close()
    const limiter = createLimiter(
      [fixedWindow({ limit: 5, per: '1m', by }), gcra({ limit: 9, per: '1m', by: 'org' })],
      { store },
    )
    expect(limiter.allow({ user: 'a', org: 'x' })).toBe(false)
    clock.advance(30)
    expect(limiter.allow({ user: 'a', org: 'x' })).toBe(false)
  },
)

describe('if another thread resets a key right after its refusal', () => {
  function made(): Store {
    const store = sharedMemoryStore({ clock: manualClock(), maxKeys: 1_000 })
    return {
      ...store,
      open(...given) {
        const table = store.open(...given)
        return {
          ...table,
          decide(...call) {
            const decision = table.decide(...call)
            if (!decision.allowed) table.reset(call[1], table.nowUs())
            return decision
          },
        }
      },
    }
  }

  it('a refusal that a penalty counts stays a refusal', () => {
    const rule = tokenBucket({ limit: 1, per: '1h' })
    const penalty = { after: 9, within: '1m', block: '1m' } as const
    const limiter = createLimiter(rule, { store: made(), penalty })
    const answers = Array.from({ length: 4 }, () => limiter.check('a').allowed)
    expect(answers).toEqual([true, false, true, false])
  })

  it('a refusal that carries rows over to other rules stays a refusal', () => {
    const policy = createPolicy({
      tierBy: 'user',
      tiers: { free: tokenBucket({ limit: 1, per: '1h', by: 'user' }) },
      defaultTier: 'free',
      rules: fixedWindow({ limit: 9, per: '1h', by: 'org' }),
    })
    const limiter = createLimiter(policy, { store: made() })
    const answers = Array.from({ length: 4 }, () => limiter.check({ user: 'a', org: 'x' }).allowed)
    expect(answers).toEqual([true, false, true, false])
  })
})
