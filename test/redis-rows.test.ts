import {
  type AsyncLimiter,
  createLimiter,
  createPolicy,
  fixedWindow,
  type Policy,
  type Rule,
  tokenBucket,
  unlimited,
} from 'sluice'
import { redisStore } from 'sluice/redis'
import { seededRandom } from 'sluice/testing'
import { describe, expect, it } from 'vitest'
import { useRedis } from './redis/fixture.ts'
import { timedStore } from './redis/timed.ts'

const redis = useRedis()

/** Creates a new node, which has seen only these rules. */
function node(rules: Rule | readonly Rule[] | Policy, name: string): AsyncLimiter {
  return createLimiter(rules, {
    store: redisStore(redis.client),
    name,
    share: true,
    timeoutMs: 5_000,
  })
}

const remaining = (each: { readonly remaining: number }) => each.remaining

describe('a row on Redis', () => {
  it('is one string per key with all rules and its block', async () => {
    const rules = [
      tokenBucket({ limit: 10, per: '1h', name: 'requests' }),
      fixedWindow({ limit: 5, per: '1d' }),
    ]
    const limiter = node(rules, 'one')
    await limiter.check('alice', 2)
    await limiter.block('alice', '1m')
    expect(await redis.client.keys('sl:one/*')).toEqual(['sl:one/alice'])
    const lines = (await redis.client.get('sl:one/alice'))!.split('\n')
    expect(lines).toEqual([
      expect.stringMatching(/^![\da-f]{13}$/),
      expect.stringMatching(/^[\da-f]{13}@[\da-f]{11}:10\/1h\trequests$/),
      expect.stringMatching(/^[\da-f]{13} 2@[\da-f]{11}:5\/1d F$/),
    ])
    await limiter.reset('alice')
    expect(await redis.client.keys('sl:one/*')).toEqual([])
  })

  it('of one token bucket without a block has at most 20 bytes', async () => {
    await node(tokenBucket({ limit: 100, per: '1m' }), 'short').check('alice')
    expect((await redis.client.get('sl:short/alice'))?.length).toBeLessThanOrEqual(20)
  })

  it('counts as used up if it cannot be decoded, and is repaired', async () => {
    const limiter = node(tokenBucket({ limit: 10, per: '1h' }), 'poisoned')
    const name = 'sl:poisoned/alice'
    const poison = [
      'inf:10/1h',
      `${'9'.repeat(25)}:10/1h`,
      '-5:10/1h',
      'v2 5:10/1h',
      '',
      'x',
      '5',
      ':10/1h',
      ' :10/1h',
    ]
    for (const bad of [...poison, '5:10/1h extra 5', '5:1/1h more words here']) {
      for (const costs of [[1], [1, 1]]) {
        await redis.client.set(name, bad)
        const answers = await limiter.checkMany(costs.map((cost) => ({ key: 'alice', cost })))
        const seen = answers.map(({ allowed, source }) => [allowed, source])
        const isRead = bad.startsWith('5:1/1h')
        expect([bad, ...seen]).toEqual([bad, ...costs.map(() => [isRead, 'store'])])
        expect((await limiter.peek('alice', 0)).remaining).toBe(isRead ? 10 - costs.length : 0)
        await redis.client.del(name)
      }
    }
    await redis.client.hset(name, 'a', '1')
    expect((await limiter.check('alice')).remaining).toBe(9)
  })

  it('spends where it has two lines of one rule, and is repaired', async () => {
    const limiter = node(tokenBucket({ limit: 10, per: '1h' }), 'twice')
    for (const lines of ['1:10/1h\n1:5/1h', '1:5/1h\n1:10/1h']) {
      await redis.client.set('sl:twice/alice', lines)
      const decisions = [await limiter.check('alice'), await limiter.check('alice')]
      expect(decisions.map(remaining)).toEqual([9, 8])
      expect(await redis.client.get('sl:twice/alice')).toMatch(/^[\da-f]+:10\/1h$/)
    }
  })
})

describe('a row of a later version', () => {
  it('stays where no rule counts it, and the other rules spend once', async () => {
    const rules = [
      unlimited({ by: 'user' }),
      fixedWindow({ limit: 1_000, per: '1h', by: 'org', name: 'org' }),
    ]
    const store = redisStore(redis.client)
    const penalty = { by: 'org', after: 5, within: '1m', block: '1m' } as const
    for (const [i, options] of [{}, { penalty }].entries()) {
      const name = `later-${i}`
      const limiter = createLimiter(rules, { store, name, timeoutMs: 5_000, ...options })
      const row = `sl:${name}:user/alice`
      await redis.client.set(row, 'of a later version')
      const key = { user: 'alice', org: 'acme' }
      expect((await limiter.check(key)).rules[1].remaining).toBe(999)
      await limiter.charge(key, 1)
      const permit = await limiter.tryAcquire(key)
      if (permit.allowed) await permit.settle(3)
      expect((await limiter.peek(key)).rules[1].remaining).toBe(995)
      expect(limiter.stats().contended).toBe(0)
      expect(await redis.client.get(row)).toBe('of a later version')
    }
  })
})

describe('nodes that know different rules', () => {
  const rate = (limit: number) => tokenBucket({ limit, per: '1h', name: 'rate' })
  const quota = fixedWindow({ limit: 50, per: '1d', name: 'quota' })

  it('keep and copy lines of rules that they do not know', async () => {
    const [old, young] = [node([rate(10)], 'known'), node([rate(10), quota], 'known')]
    await young.check('alice', 4)
    expect((await old.check('alice', 3)).remaining).toBe(3)
    await old.charge('alice', 1)
    await old.refund('alice', 2)
    const { rules } = await young.peek('alice')
    expect(rules.map(remaining)).toEqual([4, 46])
    await node([quota], 'known').check('alice', 6)
    expect((await young.peek('alice')).rules.map(remaining)).toEqual([4, 40])
  })

  it('stay exact while a limit is rolled out', async () => {
    const nodes = [node([rate(100)], 'rolled'), node([rate(200)], 'rolled')]
    let used = 0
    for (let i = 0; i < 20; i += 1) {
      const { allowed } = await nodes[i % 2].check('alice', 5)
      if (allowed) used += 5
    }
    expect(used).toBe(100)
    expect((await nodes[0].peek('alice')).remaining).toBe(0)
    expect((await nodes[1].peek('alice')).remaining).toBe(100)
  })

  it('drop a line of another rule once its row would have expired', async () => {
    const { store, clock, prefix } = timedStore(redis.client)
    const on = (rules: Rule[]) => createLimiter(rules, { store, name: 'a', timeoutMs: 5_000 })
    const brief = tokenBucket({ limit: 10, per: '1s', name: 'brief' })
    const limiter = on([brief, rate(10)])
    await limiter.check('alice')
    const other = createLimiter([rate(10)], {
      store: timedStore(redis.client, undefined, { prefix }, clock).store,
      name: 'a',
      timeoutMs: 5_000,
    })
    await other.check('alice')
    const row = () => redis.client.get(`${prefix}:a/alice`)
    expect(await row()).toMatch(/brief/)
    // The row's expiry told when all of it is fresh: one unit of 10/1h takes 6 minutes.
    clock.advance(6 * 60_000)
    await other.check('alice')
    expect(await row()).not.toMatch(/brief/)
  })

  it('agree on a row if they met their rules in different orders', async () => {
    const byOrder = (names: readonly string[]) => {
      const tiers: Record<string, Rule> = {
        free: tokenBucket({ limit: 10, per: '1h', name: 'rate' }),
        pro: fixedWindow({ limit: 10, per: '1h', name: 'rate' }),
      }
      const chosen = names.map((name) => [name, tiers[name]] as const)
      return node(createPolicy({ tiers: Object.fromEntries(chosen) }), 'ordered')
    }
    const nodes = [byOrder(['free', 'pro']), byOrder(['pro', 'free'])]
    const random = seededRandom(5)
    const admitted = { free: 0, pro: 0 }
    for (let i = 0; i < 200; i += 1) {
      const tier = random.pick(['free', 'pro'] as const)
      const { allowed } = await random.pick(nodes).check('alice', 1, { tier })
      if (allowed) admitted[tier] += 1
    }
    expect(admitted).toEqual({ free: 10, pro: 10 })
  })

  it('agree on a row after FLUSHALL, with either one writing first', async () => {
    const tiers = { a: rate(10), b: tokenBucket({ limit: 1_000, per: '1h', name: 'rate' }) }
    const nodes = [0, 1].map(() => node(createPolicy({ tiers }), 'flushed'))
    await nodes[0].check('alice', 1, { tier: 'a' })
    await nodes[1].check('alice', 1, { tier: 'b' })
    await redis.client.flushall()
    await nodes[1].check('alice', 10, { tier: 'a' })
    for (const limiter of nodes) {
      expect((await limiter.check('alice', 1, { tier: 'a' })).allowed).toBe(false)
      expect((await limiter.peek('alice', 1, { tier: 'b' })).remaining).toBe(990)
    }
  })
})
