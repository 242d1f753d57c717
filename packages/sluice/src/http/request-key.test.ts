import { describe, expect, it, vi } from 'vitest'
import { concurrency } from '../algorithms/concurrency.ts'
import { fixedWindow } from '../algorithms/fixed-window.ts'
import { parseRule } from '../algorithms/parse-rule.ts'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import { usableKey } from '../core/usable-key.ts'
import { createLimiter } from '../limiter/limiter.ts'
import { createPolicy } from '../limiter/policy.ts'
import { createGuard, type Incoming } from './guard.ts'
import type { RateLimitOptions } from './http-options.ts'

type Asks = { readonly key?: unknown }
const incoming: Incoming = { method: 'GET', peer: '192.0.2.1', header: () => undefined }
const nowhere = { ...incoming, peer: undefined }
const user = tokenBucket({ limit: 2, per: '1h', by: 'user', name: 'user' })
const address = tokenBucket({ limit: 3, per: '1h', by: 'address', name: 'address' })
const everyone = fixedWindow({ limit: 4, per: '1h', by: 'global', name: 'everyone' })

/** Asks with keys, and gives the statuses, and the keys that were counted. */
async function ask(options: RateLimitOptions<Asks>, given: unknown[], from = incoming) {
  const counted: unknown[] = []
  const guard = createGuard<Asks, unknown>({
    key: ({ key }) => key as string,
    ...options,
    onDecision: ({ key }) => void counted.push(key),
  })
  const statuses: number[] = []
  for (const key of given) {
    statuses.push((await guard.enter({ key }, from)).refusal?.status ?? 200)
  }
  return { statuses, counted }
}

describe('rules by address and global', () => {
  it('need no key', async () => {
    const { statuses, counted } = await ask(
      { rules: [address, everyone], key: undefined },
      [1, 2, 3, 4],
    )
    expect(statuses).toEqual([200, 200, 200, 429])
    expect(counted[0]).toEqual({ address: '192.0.2.1' })
  })

  it('separate clients behind one address by a key, and also count them together', async () => {
    const { statuses, counted } = await ask({ rules: [address, everyone] }, [
      undefined,
      null,
      {},
      { address: undefined },
      { address: '203.0.113.9' },
    ])
    expect(statuses).toEqual([200, 200, 200, 429, 200])
    expect(counted).toEqual([
      ...Array(4).fill({ address: '192.0.2.1' }),
      { address: '203.0.113.9' },
    ])
  })

  it('need no address if they only count all requests', async () => {
    const { statuses, counted } = await ask({ rules: everyone, key: undefined }, [1], nowhere)
    expect([statuses, counted]).toEqual([[200], [{}]])
  })

  it('take the field from a limiter, and from a policy, without asking for any tier', async () => {
    const limiter = createLimiter([address, everyone])
    expect((await ask({ limiter, key: undefined }, [1])).statuses).toEqual([200])
    const tierOf = vi.fn(() => 'free')
    const tiers = { free: address }
    const policy = createPolicy({ tiers, tierBy: 'address', tierOf, rules: everyone })
    const guard = createGuard<object, object>({ policy })
    expect(tierOf).not.toHaveBeenCalled()
    expect((await guard.enter({}, incoming)).refusal).toBeUndefined()
    expect(new Set(tierOf.mock.calls.flat())).toEqual(new Set(['192.0.2.1']))
  })
})

describe('rules by other fields', () => {
  it('count the parts of an object, and the address besides', async () => {
    const { statuses, counted } = await ask({ rules: [user, address] }, [
      { user: 'alice' },
      { user: 'alice' },
      { user: 'alice' },
      { user: 'bob' },
      { user: 'carol' },
    ])
    expect(statuses).toEqual([200, 200, 429, 200, 429])
    expect(counted[0]).toEqual({ user: 'alice', address: '192.0.2.1' })
  })

  it('work with rules from parseRule', async () => {
    const rules = [parseRule('1/1m by user name a'), parseRule('10/1m by global name b')]
    expect((await ask({ rules }, [{ user: 'alice' }, { user: 'alice' }])).statuses).toEqual([
      200, 429,
    ])
  })

  it('are off for a part of null', async () => {
    const given = [{ user: null }, { user: null }, { user: null }, { user: null }]
    expect((await ask({ rules: [user, address] }, given)).statuses).toEqual([200, 200, 200, 429])
  })

  it.each<[string, unknown]>([
    ['empty', ''],
    ['too long', 'x'.repeat(1_025)],
    ['a list', ['alice', 'bob']],
    ['an object', { a: 'alice' }],
    ['one of our own', 'sluice:text:1'],
  ])('count a forged part: %s', async (_what, hostile) => {
    const given = [{ user: hostile }, { user: hostile }, { user: hostile }]
    const { statuses, counted } = await ask({ rules: user }, given)
    expect([statuses, counted[0]]).toEqual([[200, 200, 429], { user: usableKey(hostile) }])
  })

  it.each<[string, unknown, RegExp]>([
    ['no key', undefined, /key must give an object with `user`, got undefined/],
    ['null', null, /key must give an object with `user`, got null/],
    ['a text', 'alice', /key must give an object with `user`, got "alice"/],
    ['a list', ['alice'], /key must give an object with `user`, got an array/],
    [
      'an undefined part',
      { user: undefined },
      /key must give a text for `user`, got undefined.*bodies/,
    ],
    ['a misspelt part', { usr: 'alice' }, /with `user`, got the field "usr"/],
    ['one part too many', { user: 'alice', org: 'acme' }, /got the field "org"/],
    ['a field of all', { user: 'alice', global: 'x' }, /got the field "global"/],
    ['nothing but null', { user: null }, /must have a field that is not null/],
    ['a number', { user: 42 }, /String\(id\)/],
  ])('report %s as an error', async (_what, given, message) => {
    await expect(ask({ rules: [user, everyone] }, [given])).rejects.toMatchObject({
      code: 'SLUICE_KEY',
      message: expect.stringMatching(message),
    })
  })

  it('ask for a key when the guard is made', () => {
    expect(() => createGuard<object, object>({ rules: [user, address] })).toThrow(
      /rules count `user`, so give `key`, a function from a request to { user }/,
    )
  })
})

describe('rules without fields', () => {
  it('still accept strings, and hash other values from clients', async () => {
    const rules = [tokenBucket({ limit: 1, per: '1h' }), concurrency({ limit: 9, hold: '1m' })]
    const { statuses, counted } = await ask({ rules }, [undefined, 'alice', 'alice', { a: 1 }])
    expect(statuses).toEqual([200, 200, 429, 200])
    expect(counted).toEqual(['192.0.2.1', 'alice', 'alice', usableKey({ a: 1 })])
  })
})
