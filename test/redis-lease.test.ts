import {
  type AsyncLimiter,
  createLimiter,
  createPolicy,
  type Decision,
  fixedWindow,
  gcra,
  leakyBucket,
  type Rule,
  type RuleFactory,
  slidingWindowLog,
  tokenBucket,
  unlimited,
} from 'sluice'
import { rateLimit } from 'sluice/fetch'
import { type RedisStoreOptions, redisStore } from 'sluice/redis'
import { describe, expect, it } from 'vitest'
import { useRedis } from './redis/fixture.ts'

const redis = useRedis()

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

interface Node {
  readonly limiter: AsyncLimiter
  /** Trips of scripts so far. */
  trips(): number
}

let names = 0
/** Returns a name that no other test uses. */
const newName = () => {
  names += 1
  return `test ${names}`
}

/** Creates a node of a fleet: a limiter with its own store. `change` may alter commands. */
function nodeOf(
  rules: Parameters<typeof createLimiter>[0],
  options: RedisStoreOptions,
  name = newName(),
  change = (text: string) => text,
): Node {
  let trips = 0
  const counting = {
    call(command: string, args: string[]) {
      if (command === 'EVALSHA') trips += 1
      const [text, ...rest] = args
      return redis.client.call(command, command === 'EVAL' ? [change(text), ...rest] : args)
    },
  }
  const store = redisStore(counting, options)
  return { limiter: createLimiter(rules, { store, name, timeoutMs: 5_000 }), trips: () => trips }
}

/** Computes `nextAfterMs` of a bucket from the other fields of its decision. */
const nextIn = (gapMs: number, { capacity, remaining, resetAfterMs }: Decision) =>
  Math.round((resetAfterMs - gapMs * (capacity - remaining - 1)) * 1_000) / 1_000

describe('the deny cache', () => {
  const ten = tokenBucket({ limit: 10, per: '10s' })

  it('refuses the same key and cost without a trip, and no other', async () => {
    const { limiter, trips } = nodeOf(ten, { denyCache: true })
    await limiter.check('alice', 8)
    const refused = await limiter.check('alice', 5)
    expect(refused).toMatchObject({ allowed: false, remaining: 2, source: 'store' })
    const before = trips()
    const again = await limiter.check('alice', 5)
    expect(again).toMatchObject({ allowed: false, remaining: 2, source: 'cache' })
    expect(again.retryAfterMs).toBeLessThanOrEqual(refused.retryAfterMs)
    expect(again.retryAfterMs).toBeGreaterThan(refused.retryAfterMs - 500)
    expect(again.rules[0].nextAfterMs).toBe(nextIn(1_000, again))
    expect(trips()).toBe(before)
    expect(await limiter.check('alice', 2)).toMatchObject({ allowed: true, source: 'store' })
    expect((await limiter.check('bob', 5)).source).toBe('store')
  })

  it('names the refusing rules as a trip would, and no earlier retry time', async () => {
    const roomy = fixedWindow({ limit: 1_000, per: '1h', name: 'roomy' })
    const { limiter, trips } = nodeOf([roomy, ten], { denyCache: true })
    const sources: string[] = []
    const limited = rateLimit({
      limiter,
      key: () => 'alice',
      cost: 6,
      onDecision: ({ decision }) => void sources.push(decision.source),
    })(() => new Response('hello'))
    const ask = () => limited(new Request('https://a.example'))
    expect((await ask()).status).toBe(200)
    const [first, before, again] = [await ask(), trips(), await ask()]
    expect([sources, trips()]).toEqual([['store', 'store', 'cache'], before])
    for (const refused of [first, again]) {
      expect(await refused.json()).toMatchObject({ 'violated-policies': ['token-bucket'] })
      // A slow machine may need a second of the two between the answers.
      expect(refused.headers.get('ratelimit')).toMatch(
        /^"roomy";r=994;t=3[56]\d\d, "token-bucket";r=([12]);t=\1$/,
      )
      const t = refused.headers.get('ratelimit')?.at(-1)
      expect(refused.headers.get('retry-after')).toBe(t)
    }
  })

  it('admits a caller at its retry time', async () => {
    const { limiter } = nodeOf(tokenBucket({ limit: 10, per: '1s' }), { denyCache: true })
    await limiter.check('alice', 10)
    const { retryAfterMs } = await limiter.check('alice')
    expect((await limiter.check('alice')).source).toBe('cache')
    await pause(Math.ceil(retryAfterMs) + 1)
    expect(await limiter.check('alice')).toMatchObject({ allowed: true, source: 'store' })
  })

  it('asks Redis again after maxMs, and sees units that others have refunded', async () => {
    const name = newName()
    const here = nodeOf(ten, { denyCache: { maxMs: 100 } }, name)
    const there = nodeOf(ten, {}, name)
    await here.limiter.check('alice', 10)
    await here.limiter.check('alice')
    await there.limiter.reset('alice')
    expect(await here.limiter.check('alice')).toMatchObject({ allowed: false, source: 'cache' })
    await pause(110)
    expect(await here.limiter.check('alice')).toMatchObject({ allowed: true, source: 'store' })
  })

  it.each<[string, (limiter: AsyncLimiter) => Promise<void>]>([
    ['a refund', (limiter) => limiter.refund('alice', 1)],
    ['a reset', (limiter) => limiter.reset('alice')],
    ['a clear', (limiter) => limiter.clear()],
  ])('drops a refusal after %s', async (_, free) => {
    const { limiter } = nodeOf(ten, { denyCache: true })
    await limiter.check('alice', 10)
    await limiter.check('alice')
    await free(limiter)
    expect(await limiter.check('alice')).toMatchObject({ allowed: true, source: 'store' })
  })

  it('caches a block as a block, and drops it after unblock', async () => {
    const { limiter, trips } = nodeOf(ten, { denyCache: true })
    await limiter.block('alice', '1m')
    await limiter.check('alice')
    const before = trips()
    expect((await limiter.check('alice')).source).toBe('blocked')
    expect(trips()).toBe(before)
    await limiter.unblock('alice')
    expect((await limiter.check('alice')).allowed).toBe(true)
  })

  it('drops a refusal when the rules change', async () => {
    const policy = createPolicy({ tiers: { free: ten }, defaultTier: 'free' })
    const { limiter } = nodeOf(policy, { denyCache: true })
    await limiter.check('alice', 10)
    await limiter.check('alice')
    policy.setOverride('alice', tokenBucket({ limit: 20, per: '10s' }))
    expect(await limiter.check('alice')).toMatchObject({ allowed: true, source: 'store' })
  })

  it('keeps at most maxKeys keys', async () => {
    const { limiter } = nodeOf(tokenBucket({ limit: 1, per: '1h' }), { denyCache: { maxKeys: 10 } })
    const sources: string[] = []
    for (let i = 0; i < 40; i += 1) {
      await limiter.check(`key ${i}`)
      await limiter.check(`key ${i}`)
    }
    for (let i = 39; i >= 0; i -= 1) sources.push((await limiter.check(`key ${i}`)).source)
    const cached = sources.filter((source) => source === 'cache').length
    expect(cached).toBeGreaterThanOrEqual(1)
    expect(cached).toBeLessThanOrEqual(10)
  })
})

describe('a lease', () => {
  // So slow that nothing refills during a test.
  const month = tokenBucket({ limit: 1_000, per: '30d' })
  const lease = { units: 100, leaseMs: 1_000 }

  it('saves trips on a busy key, and admits exactly the limit', async () => {
    const { limiter, trips } = nodeOf(month, { lease })
    const all: Decision[] = []
    for (let i = 0; i < 1_200; i += 1) all.push(await limiter.check('alice'))
    expect(all.filter(({ allowed }) => allowed)).toHaveLength(1_000)
    const leased = all.filter(({ source }) => source === 'lease')
    expect(leased.length).toBeGreaterThan(800)
    expect(leased.every(({ allowed }) => allowed)).toBe(true)
    const gapMs = (30 * 86_400_000) / 1_000
    const wrong = leased.filter((each) => each.rules[0].nextAfterMs !== nextIn(gapMs, each))
    expect(wrong).toEqual([])
    expect(trips()).toBeLessThan(400)
    // Counting down one by one, like an exact limiter.
    expect(
      all.slice(0, 900).every(({ remaining }, i) => Math.abs(remaining - (999 - i)) <= 1),
    ).toBe(true)
  })

  it('leases billions of units, and admits a limit of 10^12 to the unit', async () => {
    const rule = fixedWindow({ limit: 999_999_999_989, per: '30d' })
    const large = { units: 1_000_000_000_000, leaseMs: 1_000 }
    const name = newName()
    const { limiter, trips } = nodeOf(rule, { lease: large }, name)
    const all: Decision[] = []
    for (let i = 0; i < 900; i += 1) all.push(await limiter.check('alice', 1_000_000_007))
    expect(all.every(({ allowed }) => allowed)).toBe(true)
    expect(trips()).toBeLessThan(100)
    await limiter.close()
    const other = nodeOf(rule, {}, name).limiter
    expect((await other.check('alice', 99_999_993_690)).allowed).toBe(false)
    expect((await other.check('alice', 99_999_993_689)).remaining).toBe(0)
  })

  it('leases nothing for a key that is used once', async () => {
    const name = newName()
    const { limiter } = nodeOf(month, { lease }, name)
    await limiter.check('alice')
    expect((await nodeOf(month, {}, name).limiter.peek('alice')).remaining).toBe(999)
  })

  it('is returned when the key becomes idle, and when the limiter closes', async () => {
    const name = newName()
    const { limiter } = nodeOf(month, { lease }, name)
    const other = nodeOf(month, {}, name).limiter
    const spend = async (count: number) => {
      for (let i = 0; i < count; i += 1) await limiter.check('alice')
    }
    const left = async () => (await other.peek('alice')).remaining
    await spend(100)
    expect(await left()).toBeLessThan(900)
    await expect.poll(left, { timeout: 10_000 }).toBe(900)
    await spend(100)
    expect(await left()).toBeLessThan(800)
    await limiter.close()
    expect(await left()).toBe(800)
  })

  it('of many nodes together never exceeds the limit, and strands no units', async () => {
    const name = newName()
    const nodes = Array.from({ length: 5 }, () => nodeOf(month, { lease }, name).limiter)
    const all = await Promise.all(
      nodes.map(async (limiter) => {
        let admitted = 0
        for (let i = 0; i < 500; i += 1) {
          if ((await limiter.check('alice', 1 + (i % 3))).allowed) admitted += 1 + (i % 3)
        }
        await limiter.close()
        return admitted
      }),
    )
    const admitted = all.reduce((sum, each) => sum + each, 0)
    const { remaining } = await nodeOf(month, {}, name).limiter.peek('alice')
    expect(admitted).toBeLessThanOrEqual(1_000)
    // Some nodes were refused while others held units, which were returned later.
    expect(admitted + remaining).toBe(1_000)
  })

  it('admits in any interval what the rule admits in leaseMs more', async () => {
    const rule = gcra({ limit: 400, per: '1s', burst: 50 })
    const options = { lease: { units: 40, leaseMs: 200 } }
    const worst = await worstExcess(rule, options, (text) => text)
    expect(worst).toBeLessThanOrEqual(0)
  })

  it('keeps that bound at any size while many nodes lease and return units', async () => {
    const rule = tokenBucket({ limit: 500, per: '1s' })
    const options = { lease: { units: 5_000, leaseMs: 500 } }
    const name = newName()
    const nodes = Array.from({ length: 8 }, () => nodeOf(rule, options, name).limiter)
    // All nodes want much, then little, so that they hold and return many units; then much again.
    const ask = async (forMs: number, pauseMs: number) => {
      const endMs = performance.now() + forMs
      const counts = nodes.map(async (limiter) => {
        let admitted = 0
        while (performance.now() < endMs) {
          if ((await limiter.check('alice')).allowed) admitted += 1
          await pause(pauseMs)
        }
        return admitted
      })
      return (await Promise.all(counts)).reduce((sum, each) => sum + each, 0)
    }
    await ask(1_000, 3)
    await ask(1_500, 40)
    const startMs = performance.now()
    const admitted = await ask(100, 0)
    const ms = performance.now() - startMs + options.lease.leaseMs
    expect(admitted).toBeLessThanOrEqual(rule.capacity + 0.5 * ms)
    await Promise.all(nodes.map((limiter) => limiter.close()))
  })

  it('that is not debited fails that test', async () => {
    const rule = gcra({ limit: 400, per: '1s', burst: 50 })
    const options = { lease: { units: 40, leaseMs: 200 } }
    const change = (text: string) =>
      text.replace('if changed then spend(ahead) end', 'if changed then spend(0) end')
    // On a busy machine too few requests may be made at a time.
    const excess = () => worstExcess(rule, options, change)
    await expect.poll(excess, { timeout: 20_000 }).toBeGreaterThan(0)
  })

  it('ends with its window, and is not returned to the next', async () => {
    const rule = fixedWindow({ limit: 300, per: '1s' })
    const name = newName()
    const { limiter } = nodeOf(rule, { lease: { units: 100, leaseMs: 60_000 } }, name)
    const other = nodeOf(rule, {}, name).limiter
    for (let i = 0; i < 60; i += 1) await limiter.check('alice')
    const { remaining, resetAfterMs } = await other.peek('alice')
    // So long that the node still holds units when the window ends.
    expect(remaining).toBeLessThan(240)
    await pause(resetAfterMs + 5)
    await other.check('alice', 200)
    expect((await limiter.check('alice')).source).toBe('store')
    await limiter.close()
    expect((await other.peek('alice')).remaining).toBe(99)
  })

  it('is dropped after reset, and admits no blocked key', async () => {
    const { limiter } = nodeOf(month, { lease })
    for (let i = 0; i < 100; i += 1) await limiter.check('alice')
    await limiter.reset('alice')
    expect((await limiter.peek('alice')).remaining).toBe(1_000)
    for (let i = 0; i < 100; i += 1) await limiter.check('alice')
    await limiter.block('alice', '1m')
    expect((await limiter.check('alice')).source).toBe('blocked')
    await limiter.unblock('alice')
    expect((await limiter.peek('alice')).remaining).toBe(900)
  })

  it('is dropped after clear, and ignored by other rules and by a cost of 0', async () => {
    const larger = tokenBucket({ limit: 2_000, per: '30d' })
    const policy = createPolicy({ tiers: { free: month, pro: larger }, defaultTier: 'free' })
    const { limiter } = nodeOf(policy, { lease })
    /** Spends until the node holds a lease. */
    const spend = async () => {
      do await limiter.check('alice')
      while ((await limiter.peek('alice')).source !== 'lease')
    }
    await spend()
    expect((await limiter.check('alice', 0)).source).toBe('store')
    expect((await limiter.check('alice', 1, { tier: 'pro' })).source).toBe('store')
    await spend()
    await limiter.clear()
    expect(await limiter.peek('alice')).toMatchObject({ remaining: 1_000, source: 'store' })
  })

  it('in flight obeys a block, a reset and close', async () => {
    const name = newName()
    const { limiter } = nodeOf(month, { lease }, name)
    const other = nodeOf(month, {}, name).limiter
    const spend = async (count: number) => {
      for (let i = 0; i < count; i += 1) await limiter.check('alice')
    }
    await spend(10)
    const late = limiter.check('alice')
    await limiter.block('alice', '1m')
    await late
    expect((await limiter.check('alice')).source).toBe('blocked')
    await limiter.unblock('alice')
    await expect.poll(async () => (await other.peek('alice')).remaining).toBe(989)
    await limiter.reset('alice')
    await spend(40)
    const last = limiter.check('alice')
    await limiter.close()
    await last
    await expect.poll(async () => (await other.peek('alice')).remaining).toBe(959)
  })

  it('is returned in time when another limiter of the name has closed', async () => {
    const store = redisStore(redis.client, { lease: { units: 100, leaseMs: 200 } })
    const name = newName()
    const [one, two] = [0, 1].map(() =>
      createLimiter(month, { store, name, share: true, timeoutMs: 5_000 }),
    )
    for (let i = 0; i < 20; i += 1) await one.check('alice')
    await one.close()
    for (let i = 0; i < 40; i += 1) await two.check('alice')
    const other = nodeOf(month, {}, name).limiter
    await expect.poll(async () => (await other.peek('alice')).remaining).toBe(940)
  })

  it('works for token buckets, GCRA and fixed windows only', () => {
    const on = (rule: Rule) => () => nodeOf([rule, unlimited()], { lease })
    expect(on(fixedWindow({ limit: 5, per: '1s' }))).not.toThrow()
    for (const make of [leakyBucket, slidingWindowLog] as RuleFactory[]) {
      expect(on(make({ limit: 5, per: '1s' }))).toThrow(/cannot be leased/)
    }
  })

  it('refuses invalid options', () => {
    expect(() => redisStore(redis.client, { lease: { units: 0 } })).toThrow(/lease.units/)
    expect(() => redisStore(redis.client, { lease: { leaseMs: 5 } as never })).toThrow(
      /lease.units/,
    )
    expect(() => redisStore(redis.client, { denyCache: { maxMs: -1 } })).toThrow(/denyCache.maxMs/)
  })
})

/**
 * Lets three nodes make calls as fast as they can. Returns the most units by which admissions in
 * some interval t exceeded what the rule admits in t + leaseMs.
 */
async function worstExcess(
  rule: Rule,
  options: RedisStoreOptions & { lease: { leaseMs: number } },
  change: (text: string) => string,
): Promise<number> {
  const name = newName()
  await redis.client.script('FLUSH')
  const times: number[] = []
  const endMs = performance.now() + 1_500
  const run = async ({ limiter }: Node) => {
    while (performance.now() < endMs) {
      const askedMs = performance.now()
      // When it was admitted is not known to the microsecond: at the earliest when it was asked.
      if ((await limiter.check('alice')).allowed) times.push(askedMs)
      if (Math.random() < 0.05) await pause(Math.random() * 30)
    }
    await limiter.close()
  }
  await Promise.all(Array.from({ length: 3 }, () => run(nodeOf(rule, options, name, change))))
  times.sort((a, b) => a - b)
  const perMs = (rule.limit / rule.perUs) * 1_000
  const slackMs = 20
  let worst = Number.NEGATIVE_INFINITY
  for (let i = 0; i < times.length; i += 1) {
    for (let j = i; j < times.length; j += 1) {
      const ms = times[j] - times[i] + options.lease.leaseMs + slackMs
      worst = Math.max(worst, j - i + 1 - (rule.capacity + perMs * ms))
    }
  }
  return worst
}
