import { describe, expect, it } from 'vitest'
import {
  createLimiter,
  type Decision,
  fixedWindow,
  leakyBucket,
  memoryStore,
  slidingWindowLog,
  tokenBucket,
} from '../index.ts'
import { manualClock } from '../testing/index.ts'

const three = tokenBucket({ limit: 3, per: '3s' })
const made = () => {
  const clock = manualClock()
  return { clock, limiter: createLimiter(three, { clock }) }
}
const fields = () => createLimiter(tokenBucket({ limit: 3, per: '3s', by: 'user' }))
const withCode = (code: string) => expect.objectContaining({ code })

describe('a limiter', () => {
  it('returns complete decisions', () => {
    const limiter = createLimiter(tokenBucket({ limit: 100, per: '1m', burst: 20 }), {
      clock: manualClock(),
    })
    expect(limiter.allow('alice')).toBe(true)
    expect(limiter.check('alice', 5)).toEqual({
      allowed: true,
      capacity: 20,
      remaining: 14,
      retryAfterMs: 0,
      resetAfterMs: 3_600,
      delayMs: 0,
      rule: 'token-bucket',
      rules: [
        {
          rule: 'token-bucket',
          capacity: 20,
          remaining: 14,
          retryAfterMs: 0,
          resetAfterMs: 3_600,
          nextAfterMs: 600,
          delayMs: 0,
        },
      ],
      source: 'store',
    })
  })

  it('allows by the same decisions as it checks', () => {
    const { limiter, clock } = made()
    expect(['a', 'a', 'a', 'a', 'b'].map((key) => limiter.allow(key))).toEqual([
      true,
      true,
      true,
      false,
      true,
    ])
    clock.advance(999.999)
    expect(limiter.allow('a')).toBe(false)
    clock.advance(0.001)
    expect([limiter.allow('a', 2), limiter.allow('a'), limiter.allow('a', 0)]).toEqual([
      false,
      true,
      true,
    ])
    limiter.block('a', 5)
    expect(limiter.allow('a', 0)).toBe(false)
  })

  it.each(['', 'x'.repeat(1_025), 5, null, undefined, {}])('refuses the key %o', (key) => {
    const { limiter } = made()
    for (const verb of [
      'allow',
      'check',
      'peek',
      'charge',
      'refund',
      'reset',
      'unblock',
    ] as const) {
      expect(() => limiter[verb](key as never, 1)).toThrow(withCode('SLUICE_KEY'))
    }
  })

  it.each([-1, 0.5, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '1', null, 1_000_000_000_001, 1n])(
    'refuses the cost %o',
    (cost) => {
      const { limiter } = made()
      for (const verb of ['allow', 'check', 'peek', 'charge', 'refund'] as const) {
        expect(() => limiter[verb]('a', cost as never)).toThrow(withCode('SLUICE_COST'))
      }
      expect(limiter.size()).toBe(0)
    },
  )

  it('throws for a cost that could never pass, and spends nothing', async () => {
    const limiter = createLimiter([three, fixedWindow({ limit: 2, per: '1s' })], {
      clock: manualClock(),
    })
    const never = withCode('SLUICE_COST_EXCEEDS_CAPACITY')
    expect(() => limiter.check('a', 3)).toThrow(never)
    expect(() => limiter.allow('a', 3)).toThrow(never)
    expect(() => limiter.peek('a', 3)).toThrow(never)
    expect(() => limiter.checkMany([{ key: 'a' }, { key: 'a', cost: 3 }])).toThrow(never)
    await expect(limiter.wait('a', 3)).rejects.toThrow(never)
    expect(limiter.peek('a').remaining).toBe(2)
  })

  it('refuses allow() with a leaky bucket', () => {
    const limiter = createLimiter([three, leakyBucket({ limit: 1, per: '1s' })])
    expect(() => limiter.allow('a')).toThrow(withCode('SLUICE_ALLOW_DELAYS'))
    expect(limiter.size()).toBe(0)
  })

  it('reports every decision once, with key and cost', async () => {
    const seen: [boolean, string, number][] = []
    const limiter = createLimiter(three, {
      clock: manualClock(),
      onDecision: ({ allowed }: Decision, key, cost) => seen.push([allowed, key, cost]),
    })
    limiter.allow('a')
    limiter.check('a', 2)
    limiter.checkMany([{ key: 'a' }, { key: 'b', cost: 3 }])
    await limiter.wait('c')
    limiter.peek('d')
    expect(seen).toEqual([
      [true, 'a', 1],
      [true, 'a', 2],
      [false, 'a', 1],
      [true, 'b', 3],
      [true, 'c', 1],
    ])
  })

  it('lists the keys that are not fresh, with what peek says', () => {
    const { limiter, clock } = made()
    limiter.check('a', 3)
    limiter.check('b')
    limiter.block('c', '5s')
    limiter.check('d', 0)
    const list = [...limiter.entries()]
    expect(list.map(({ key, decision }) => [key, decision.allowed, decision.source])).toEqual([
      ['a', false, 'store'],
      ['b', true, 'store'],
      ['c', false, 'blocked'],
    ])
    expect(limiter.size()).toBe(3)
    clock.advance(1_000)
    expect([...limiter.entries()].map(({ key }) => key)).toEqual(['a', 'c'])
    limiter.reset('a')
    expect(limiter.size()).toBe(1)
    limiter.clear()
    expect(limiter.size()).toBe(0)
  })

  it('refuses calls after close', async () => {
    const { limiter } = made()
    limiter.check('a', 3)
    const waiting = limiter.wait('a')
    limiter.close()
    limiter.close()
    await expect(waiting).rejects.toThrow(withCode('SLUICE_CLOSED'))
    for (const verb of ['allow', 'check', 'peek', 'reset'] as const) {
      expect(() => limiter[verb]('a')).toThrow(withCode('SLUICE_CLOSED'))
    }
    expect(() => limiter.clear()).toThrow(withCode('SLUICE_CLOSED'))
    expect(() => [...limiter.entries()]).toThrow(withCode('SLUICE_CLOSED'))
    await expect(limiter.wait('a')).rejects.toThrow(withCode('SLUICE_CLOSED'))
  })

  it('closes at the end of its block when declared with using', () => {
    const { limiter } = made()
    limiter[Symbol.dispose]()
    expect(() => limiter.size()).toThrow(withCode('SLUICE_CLOSED'))
  })

  it.each([0, -1, Number.NaN, '5', 'soon', null, 36_525 * 86_400_000 + 1])(
    'refuses to block for %o',
    (ms) => {
      expect(() => made().limiter.block('a', ms as never)).toThrow(withCode('SLUICE_DURATION'))
    },
  )

  it.each([
    [{ stor: memoryStore() }],
    [{ store: {} }],
    [{ store: null }],
    [{ store: memoryStore(), clock: manualClock() }],
    [null],
  ])('refuses the options %o', (options) => {
    expect(() => createLimiter(three, options as never)).toThrow(withCode('SLUICE_OPTION'))
  })

  it.each([[undefined], [[]], [{}], [[{}]], ['100/1m']])('refuses the rules %o', (rules) => {
    expect(() => createLimiter(rules as never)).toThrow(withCode('SLUICE_OPTION'))
  })

  it.each([{ teir: 'pro' }, 'pro', { tier: 5 }, null])(
    'refuses %o as options of a call',
    (options) => {
      const { limiter } = made()
      for (const verb of ['allow', 'check', 'peek', 'charge', 'refund'] as const) {
        expect(() => limiter[verb]('a', 1, options as never)).toThrow(withCode('SLUICE_OPTION'))
      }
      expect(limiter.size()).toBe(0)
    },
  )

  it('survives hostile values: errors show them briefly and never run them', () => {
    const { limiter } = made()
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    expect(() => limiter.check(proxy as never)).toThrow(withCode('SLUICE_KEY'))
    expect(() => createLimiter(three, proxy)).toThrow(withCode('SLUICE_OPTION'))
    expect(() => limiter.check('\0'.repeat(2 ** 27))).toThrow(withCode('SLUICE_KEY'))
    expect(() => limiter.checkMany(Object.assign([{ key: 'a' }], { 2: { key: 'b' } }))).toThrow(
      withCode('SLUICE_OPTION'),
    )
    expect(() => createLimiter(three, { onDecision: 'x' as never })).toThrow(
      withCode('SLUICE_OPTION'),
    )
    for (const clock of [null, {}, 5]) {
      expect(() => memoryStore({ clock: clock as never })).toThrow(withCode('SLUICE_CLOCK'))
    }
    expect(limiter.size()).toBe(0)
  })

  it.each([
    [() => createLimiter(three, fixedWindow({ limit: 1, per: '1s' }) as never), /one array/],
    [() => createLimiter(three, memoryStore() as never), /\{ store \}/],
    [() => made().limiter.check('a', { tier: 'pro' } as never), /third argument/],
    [() => made().limiter.check('a', -1), /got -1\. To give units back, call refund\(\) with a/],
    [() => made().limiter.refund('a', -1), /call refund\(\) with a positive number/],
    [() => made().limiter.check({ ip: '::1' } as never), /rules with `by`/],
    [
      () => fields().check({ user: 42 } as never),
      /field "user" of a key .* got 42\. .*String\(id\)/,
    ],
    [
      () => tokenBucket({ limit: 2e12, per: '1m' }),
      /from 1 to 1,000,000,000,000, got 2000000000000\. For no limit/,
    ],
    [() => slidingWindowLog({ limit: 20_000, per: '1m' }), /slidingWindowCounter for larger/],
    [
      () => slidingWindowLog({ limit: 0, per: '1m' }),
      /For no limit, use unlimited\(\); to refuse a key, block\(\) it/,
    ],
    [
      () => tokenBucket({ limit: Number.POSITIVE_INFINITY, per: '1m' }),
      /For no limit, use unlimited\(\)/,
    ],
    [() => tokenBucket({ limit: 0.5, per: '1s' }), /For a fraction of a unit, take a longer time/],
    [() => tokenBucket({ limit: -5, per: '1s' }), /got -5\. For no limit/],
    [() => made().limiter.check(undefined as never), /'anonymous'/],
    [() => made().limiter.check(42 as never), /String\(id\)/],
    [() => made().limiter.checkMany([{ key: 'a' }, { key: 'b', cost: -1 }]), /request 1: cost/],
    [() => made().limiter.checkMany(['a'] as never), /request 0: /],
  ])('explains common mistakes, case %#', (mistake, lesson) => {
    expect(mistake).toThrow(lesson)
  })

  it('leaves its name free when it cannot be made', () => {
    const store = memoryStore()
    expect(() => createLimiter([three, three], { store })).toThrow(
      withCode('SLUICE_RULE_DUPLICATE'),
    )
    expect(createLimiter(three, { store }).check('a').allowed).toBe(true)
  })

  it('treats a null tier as a missing one', () => {
    expect(made().limiter.check('a', 1, { tier: null } as never).remaining).toBe(2)
  })

  it('refuses a tier without a policy, and unknown options in a batch', () => {
    const { limiter } = made()
    expect(() => limiter.check('a', 1, { tier: 'pro' as never })).toThrow(withCode('SLUICE_OPTION'))
    expect(() => limiter.checkMany([{ key: 'a', weight: 3 } as never])).toThrow(
      withCode('SLUICE_OPTION'),
    )
    expect(() => limiter.checkMany('ab' as never)).toThrow(withCode('SLUICE_OPTION'))
  })
})
