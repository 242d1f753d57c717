import { createContext, runInContext } from 'node:vm'
import { describe, expect, it, vi } from 'vitest'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import { unlimited } from '../algorithms/unlimited.ts'
import { createLimiter } from '../limiter/limiter.ts'
import { createPolicy } from '../limiter/policy.ts'
import { createGuard } from './guard.ts'
import type { RateLimitOptions } from './http-options.ts'

const ten = tokenBucket({ limit: 10, per: '1h' })
const one = tokenBucket({ limit: 1, per: '1h' })
const incoming = { method: 'GET', peer: '192.0.2.1', header: () => undefined }

/** The statuses of a few requests, 200 for those that may go ahead. */
async function statuses(options: RateLimitOptions<object>, times = 2): Promise<number[]> {
  const guard = createGuard(options)
  const all: number[] = []
  for (let i = 0; i < times; i += 1) {
    all.push((await guard.enter({}, incoming)).refusal?.status ?? 200)
  }
  return all
}

describe('the guard', () => {
  it('awaits thenables, instead of treating them as true', async () => {
    const foreign = runInContext('() => Promise.resolve(false)', createContext())
    expect(await statuses({ rules: one, skip: foreign })).toEqual([200, 429])
    // biome-ignore lint/suspicious/noThenProperty: that is the point
    const thenable = { then: (resolve: (value: boolean) => void) => resolve(false) }
    expect(await statuses({ rules: one, skip: () => thenable as never })).toEqual([200, 429])
  })

  it('does not apply a proxy’s allow list entry to its clients', async () => {
    const options = { rules: one, trustProxy: 1, allowList: ['192.0.2.1'] }
    const guard = createGuard<object, object>(options)
    const vague = { ...incoming, header: () => 'unknown' }
    expect((await guard.enter({}, vague)).refusal).toBeUndefined()
    expect((await guard.enter({}, vague)).refusal?.status).toBe(429)
  })

  it('refuses a denied address even if another header names a different one', async () => {
    const guard = createGuard<object, object>({ rules: ten, trustProxy: 1, denyList: ['6.6.6.6'] })
    for (const [list, forwarded] of [
      ['6.6.6.6', 'for=9.9.9.9'],
      ['9.9.9.9', 'for=6.6.6.6'],
    ]) {
      const header = (name: string) => (name === 'forwarded' ? forwarded : list)
      expect((await guard.enter({}, { ...incoming, header })).refusal?.status).toBe(403)
    }
  })

  it('counts IPv6 clients by their /64 network by default', async () => {
    const keysOf = async (options: object) => {
      const keys: unknown[] = []
      const onDecision = ({ key }: { key: unknown }) => void keys.push(key)
      const guard = createGuard<object, object>({ rules: ten, onDecision, ...options })
      for (const peer of ['2001:db8:0:7::1', '::ffff:192.0.2.7']) {
        await guard.enter({}, { ...incoming, peer })
      }
      return keys
    }
    expect(await keysOf({})).toEqual(['2001:db8:0:7:0:0:0:0/64', '192.0.2.7'])
    expect(await keysOf({ ipv6Bits: 128 })).toEqual(['2001:db8:0:7:0:0:0:1', '192.0.2.7'])
  })

  it.each<[string, unknown]>([
    ['an empty key', ''],
    ['a key that is too long', 'x'.repeat(1_025)],
    ['a key of lone surrogates', '\ud800'.repeat(2_000)],
    ['a parameter that came twice', ['alice', 'bob']],
    ['a parameter with brackets', { a: 'alice' }],
  ])('counts requests with %s', async (_what, hostile) => {
    const limiter = createLimiter(one)
    const key = (request: { key?: unknown }) => request.key as string
    const guard = createGuard({ limiter, key })
    const entrances = [
      guard.enter({ key: hostile }, incoming),
      guard.enter({ key: hostile }, incoming),
    ]
    expect((await Promise.all(entrances)).map(({ refusal }) => refusal?.status)).toEqual([
      undefined,
      429,
    ])
    const others = ['alice', 'x'.repeat(1_024), 'x'.repeat(1_026), undefined]
    for (const other of others) {
      expect((await guard.enter({ key: other }, incoming)).refusal).toBeUndefined()
    }
  })

  it('counts a null key by the address, and reports a key that no client can send', () => {
    const guard = createGuard({
      rules: one,
      key: (request: { key?: unknown }) => request.key as string,
    })
    expect(guard.enter({}, incoming)).toMatchObject({ refusal: undefined })
    expect(guard.enter({ key: null }, incoming)).toMatchObject({ refusal: { status: 429 } })
    expect(() => guard.enter({ key: 42 }, incoming)).toThrow(/String\(id\)/)
  })

  it('answers a denied address with a plain problem document', async () => {
    const guard = createGuard<object, object>({ rules: ten, denyList: ['192.0.2.0/24'] })
    const { refusal, fields } = await guard.enter({}, incoming)
    expect(fields).toEqual([])
    expect(refusal?.fields).toEqual([
      ['content-type', 'application/problem+json'],
      ['cache-control', 'no-store'],
    ])
    expect(JSON.parse(refusal?.body ?? '')).toEqual({
      type: 'about:blank',
      title: 'Forbidden',
      status: 403,
    })
  })

  it('lets onLimited replace fields in any case, and keeps the others', async () => {
    const fields = [['Retry-After', '7']] as const
    const guard = createGuard<object, object>({ rules: one, onLimited: () => ({ fields }) })
    await guard.enter({}, incoming)
    expect((await guard.enter({}, incoming)).refusal).toMatchObject({
      status: 429,
      fields: [
        ['content-type', 'application/problem+json'],
        ['cache-control', 'no-store'],
        ['Retry-After', '7'],
      ],
    })
  })

  it('names the rules of the tier that can never admit a cost', async () => {
    const small = tokenBucket({ limit: 5, per: '1h', name: 'small' })
    const tiers = { free: [ten, small], pro: [tokenBucket({ limit: 99, per: '1h' })] }
    const policy = createPolicy({ tiers, defaultTier: 'pro' })
    const guard = createGuard<object, object>({ policy, tier: () => 'free', cost: 6 })
    const { refusal } = await guard.enter({}, incoming)
    expect(JSON.parse(refusal?.body ?? '')).toMatchObject({
      'violated-policies': ['small'],
      detail:
        'This request costs 6 and can never pass: "small" admits at most 5. Waiting does not help.',
    })
  })

  it.each([undefined, null])('leaves the tier to the policy where tier gives %s', async (tier) => {
    const policy = createPolicy({ tiers: { free: one, pro: ten }, defaultTier: 'pro' })
    const guard = createGuard<object, object>({ policy, tier: () => tier })
    expect((await guard.enter({}, incoming)).limit?.decision.capacity).toBe(10)
  })

  it('says what a partition key must be', async () => {
    const guard = createGuard<object, object>({ rules: ten, partitionKey: () => 7 as never })
    expect(() => guard.enter({}, incoming)).toThrow(/partitionKey must give a string .* got 7/)
  })

  it('in shadow mode admits even costs that can never pass, and settles spends', async () => {
    const limiter = createLimiter(ten)
    const [key, shadow] = [() => 'alice', true]
    const never = createGuard<object, object>({ limiter, key, cost: 11, shadow })
    expect(await never.enter({}, incoming)).toMatchObject({ fields: [], refusal: undefined })
    const guard = createGuard<object, object>({ limiter, key, shadow, finalCost: () => 4 })
    guard.finish(await guard.enter({}, incoming), {}, {}, true)
    await vi.waitFor(() => expect(limiter.peek('alice').remaining).toBe(6))
  })

  it.each([1, 11])('refuses a blocked key in shadow, too, at a cost of %d', async (cost) => {
    const limiter = createLimiter(ten)
    const onDecision = vi.fn()
    const options = { limiter, key: () => 'alice', cost, shadow: true, onDecision }
    const guard = createGuard<object, object>(options)
    expect((await guard.enter({}, incoming)).refusal).toBeUndefined()
    limiter.block('alice', '30s')
    const { refusal, fields } = await guard.enter({}, incoming)
    expect(refusal).toMatchObject({ status: 429, body: expect.stringContaining('Blocked.') })
    expect(refusal?.fields).toContainEqual(['retry-after', '30'])
    // Of rules that are not in force the response says nothing.
    expect(fields).toEqual([])
    expect(onDecision.mock.lastCall?.[0]).toMatchObject({
      shadowed: false,
      decision: { allowed: false, source: 'blocked' },
    })
    limiter.unblock('alice')
    expect((await guard.enter({}, incoming)).refusal).toBeUndefined()
  })

  it('tells a client that a cost can never pass, without advice for operators', async () => {
    const guard = createGuard<object, object>({ rules: ten, cost: 11 })
    const { detail } = JSON.parse((await guard.enter({}, incoming)).refusal?.body ?? '')
    expect(detail).toBe(
      'This request costs 11 and can never pass: "token-bucket" admits at most 10. Waiting does not help.',
    )
  })

  it.each([1_000_000_000_001, 2e15, 1e300])('refuses a forged cost of %d', async (cost) => {
    const guard = createGuard<object, object>({ rules: ten, cost: () => cost })
    const { refusal, fields } = await guard.enter({}, incoming)
    expect([refusal?.status, fields]).toEqual([429, []])
    expect(JSON.parse(refusal?.body ?? '')).toMatchObject({
      'violated-policies': ['token-bucket'],
    })
    const limiter = createLimiter(unlimited())
    const free = createGuard<object, object>({ limiter, cost: () => cost, key: () => 'alice' })
    expect((await free.enter({}, incoming)).refusal).toBeUndefined()
    limiter.block('alice', '1h')
    expect((await free.enter({}, incoming)).refusal?.status).toBe(429)
    const mistaken = createGuard<object, object>({ rules: ten, cost: () => -cost })
    expect(() => mistaken.enter({}, incoming)).toThrow(/cost must be a whole number/)
  })

  it.each([-5, 1.5, Number.NaN, null, '3', {}])('reports a final cost of %s', async (final) => {
    const onError = vi.fn()
    const limiter = createLimiter(ten)
    const key = () => 'alice'
    const finalCost = () => final as number
    const guard = createGuard<object, object>({ limiter, key, finalCost, onError })
    guard.finish(await guard.enter({}, incoming), {}, {}, true)
    await vi.waitFor(() => expect(onError).toHaveBeenCalledOnce())
    expect(onError.mock.calls[0][0]).toMatchObject({ code: 'SLUICE_COST' })
    expect(limiter.peek('alice').remaining).toBe(9)
  })

  it('charges what it can for a final cost beyond all bounds', async () => {
    const limiter = createLimiter(ten)
    const guard = createGuard({ limiter, key: () => 'alice', finalCost: () => 2_000_000_000_000 })
    guard.finish(await guard.enter({}, incoming), {}, {}, true)
    await vi.waitFor(() => expect(limiter.peek('alice').remaining).toBe(0))
  })

  it('refunds nothing for an unfinished response, but charges', async () => {
    const limiter = createLimiter(ten)
    let final = 0
    const guard = createGuard({ limiter, key: () => 'alice', finalCost: () => final })
    guard.finish(await guard.enter({}, incoming), {}, {}, false)
    final = 4
    guard.finish(await guard.enter({}, incoming), {}, {}, false)
    await vi.waitFor(() => expect(limiter.peek('alice').remaining).toBe(5))
  })

  it('survives listeners that fail', async () => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => {})
    const onError = vi.fn(() => {
      throw new Error('of onError')
    })
    const onDecision = async () => {
      throw new Error('of onDecision')
    }
    expect(await statuses({ rules: one, onDecision: onDecision as never, onError })).toEqual([
      200, 429,
    ])
    await vi.waitFor(() => expect(log).toHaveBeenCalledTimes(2))
    expect(onError).toHaveBeenCalledTimes(2)
    log.mockRestore()
  })

  it.each<[object, RegExp]>([
    [{ shadow: 'false' }, /shadow must be true or false/],
    [{ allowList: null }, /allowList must be a list/],
    [{ denyList: ['::ffff:10.0.0.0/8'] }, /item 1 must be an address or a block/],
  ])('refuses %o', (options, message) =>
    expect(() => createGuard({ rules: one, ...options })).toThrow(message),
  )

  it.each<[string, 1 | 'framework', object, Record<string, string>]>([
    ['two headers that differ', 1, {}, { 'x-forwarded-for': '1.1.1.1', forwarded: 'for=2.2.2.2' }],
    ['no address in the header', 1, {}, { 'x-forwarded-for': 'unknown' }],
    ['no address in what the framework found', 'framework', { frameworkIp: 'unknown' }, {}],
  ])('counts clients without a connection together: %s', async (_, trustProxy, more, headers) => {
    const guard = createGuard<object, object>({ rules: one, trustProxy, allowList: ['::'] }, true)
    const header = (name: string) => headers[name]
    const hidden = { ...incoming, peer: undefined, header, ...more }
    expect((await guard.enter({}, hidden)).refusal).toBeUndefined()
    expect((await guard.enter({}, hidden)).refusal?.status).toBe(429)
  })

  it('throws if lists need an address and there is none', () => {
    const guard = createGuard<object, object>({ rules: one, denyList: ['0.0.0.0/0'] })
    const nowhere = { ...incoming, peer: undefined }
    expect(() => guard.enter({}, nowhere)).toThrow(/address of this request is not known/)
    const framework = createGuard<object, object>({ rules: one, trustProxy: 'framework' }, true)
    expect(() => framework.enter({}, nowhere)).toThrow(/address of this request is not known/)
  })
})
