import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import {
  createLimiter,
  createPolicy,
  type Decision,
  fixedWindow,
  type Rule,
  tokenBucket,
} from 'sluice'
import { redisStore } from 'sluice/redis'
import { createModel, ruleMakers, seededRandom, storeSuite } from 'sluice/testing'
import { describe, expect, it } from 'vitest'
import { useRedis } from './redis/fixture.ts'
import { timedStore, type Wire } from './redis/timed.ts'

const redis = useRedis()

/** Counts the trips of scripts, and holds them back until they are released. */
function createGate() {
  const trips: string[][] = []
  let held: (() => void)[] | undefined
  const wire: Wire = async (send, command, args) => {
    if (command === 'EVALSHA') {
      trips.push(args)
      if (held) await new Promise<void>((resolve) => held?.push(resolve))
    }
    return send(command, args)
  }
  return {
    trips,
    wire,
    hold() {
      held = []
    },
    /** Releases the first `count` trips, or all of them including later ones. */
    letGo(count?: number) {
      for (const go of held?.splice(0, count ?? held.length) ?? []) go()
      if (count === undefined) held = undefined
    },
  }
}

const options = { timeoutMs: 20_000 }
const rule = tokenBucket({ limit: 10, per: '10s' })

describe('calls on their way to Redis', () => {
  it('keep their order if the script leaves one with new limits to the library', async () => {
    const { store } = timedStore(redis.client)
    const tier = (limit: number) => fixedWindow({ limit, per: '1m', by: 'user' })
    const policy = createPolicy({
      tierBy: 'user',
      tiers: { small: tier(3), large: tier(6) },
      defaultTier: 'small',
      rules: fixedWindow({ limit: 5, per: '1m', by: 'global', name: 'everyone' }),
    })
    const limiter = createLimiter(policy, { store, ...options })
    await limiter.checkMany([{ key: { user: 'b' } }])
    policy.setTier('b', 'large')
    const users = ['a', 'b', 'a', 'b', 'a']
    const decisions = await limiter.checkMany(users.map((user) => ({ key: { user } })))
    const left = decisions.map(({ allowed, rules }) => [allowed, rules[1].remaining])
    expect(left).toEqual([
      [true, 3],
      [true, 2],
      [true, 1],
      [true, 0],
      [false, 0],
    ])
  })

  it('go at once if no trip is in flight, else together, up to 128 at a time', async () => {
    const { wire, trips, hold, letGo } = createGate()
    const { store } = timedStore(redis.client, wire)
    const limiter = createLimiter(rule, { store, ...options })
    await limiter.checkMany([{ key: 'warm' }, { key: 'up' }])
    trips.length = 0
    hold()
    const all = [limiter.check('first')]
    await expect.poll(() => trips.length).toBe(1)
    for (let i = 0; i < 100; i += 1) all.push(limiter.check(`key ${i}`))
    await setImmediate()
    expect(trips).toHaveLength(1)
    for (let i = 100; i < 200; i += 1) all.push(limiter.check(`key ${i}`))
    expect(trips).toHaveLength(2)
    letGo()
    const decisions = await Promise.all(all)
    expect(trips.map((words) => Number(words[1]))).toEqual([1, 128, 72])
    expect(decisions.every(({ remaining }) => remaining === 9)).toBe(true)
  })

  it('do not wait for a trip in flight if the latency is so high that they would be late', async () => {
    const far = {
      async call(command: string, args: string[]) {
        await sleep(15)
        const answer = await redis.client.call(command, args)
        await sleep(15)
        return answer
      },
    }
    const limiter = createLimiter(tokenBucket({ limit: 10_000, per: '1s' }), {
      store: redisStore(far),
      name: 'far away',
    })
    await expect.poll(async () => (await limiter.check('alice')).source).toBe('store')
    const sources: string[] = []
    const all: Promise<unknown>[] = []
    for (let i = 0; i < 300; i += 1) {
      all.push(limiter.check('alice').then(({ source }) => sources.push(source)))
      await sleep(1)
    }
    await Promise.all(all)
    // If they had waited for each other, Redis would have decided hardly any in time.
    expect(sources.filter((source) => source === 'store').length).toBeGreaterThan(150)
  })

  it('name a key once per trip, and are decided one by one', async () => {
    const { wire, trips, hold, letGo } = createGate()
    const { store } = timedStore(redis.client, wire)
    const limiter = createLimiter(rule, { store, ...options })
    await limiter.check('other')
    trips.length = 0
    hold()
    const first = limiter.check('first')
    await expect.poll(() => trips.length).toBe(1)
    const hot = [3, 3, 3, 2, 1, 1].map((cost) => limiter.check('hot', cost))
    const peek = limiter.peek('hot')
    await limiter.check('hot', -1).catch(() => {})
    letGo()
    await first
    const answers = await Promise.all(hot)
    expect(answers.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
      [true, 7],
      [true, 4],
      [true, 1],
      [false, 1],
      [true, 0],
      [false, 0],
    ])
    expect((await peek).remaining).toBe(0)
    expect(trips).toHaveLength(2)
    expect(trips[1].filter((word) => word.endsWith('/hot'))).toHaveLength(1)
  })

  it('of a checkMany make one trip per 128', async () => {
    const { wire, trips } = createGate()
    const { store } = timedStore(redis.client, wire)
    const limiter = createLimiter(rule, { store, ...options })
    await limiter.check('warm')
    trips.length = 0
    await limiter.checkMany(Array.from({ length: 128 }, (_, i) => ({ key: `key ${i}` })))
    expect(trips).toHaveLength(1)
    await limiter.checkMany(Array.from({ length: 300 }, (_, i) => ({ key: `key ${i}` })))
    expect(trips).toHaveLength(4)
  })

  it('that miss their deadline at Redis spend nothing, and are retried in time', async () => {
    const { wire, trips } = createGate()
    const { store, clock } = timedStore(redis.client, wire)
    const limiter = createLimiter(rule, { store, ...options })
    await limiter.check('alice')
    trips.length = 0
    // Redis's clock is set forward by an hour, so a deadline by the old clock has passed.
    clock.advance(3_600_000)
    expect(await limiter.check('alice', 4)).toMatchObject({ remaining: 6, source: 'store' })
    expect(trips).toHaveLength(2)
    expect((await limiter.peek('alice')).remaining).toBe(6)
    // Several calls at once take another code path.
    clock.advance(3_600_000)
    trips.length = 0
    const both = await limiter.checkMany([{ key: 'alice', cost: 4 }, { key: 'bob' }])
    expect(both.map(({ remaining }) => remaining)).toEqual([6, 9])
    expect(trips).toHaveLength(2)
  })

  it('for one key keep their order when trips miss their deadline', async () => {
    const { wire, trips, hold, letGo } = createGate()
    const { store, clock } = timedStore(redis.client, wire)
    const limiter = createLimiter(fixedWindow({ limit: 200, per: '400d' }), { store, ...options })
    await limiter.check('alice')
    trips.length = 0
    hold()
    const first = limiter.check('bob')
    await expect.poll(() => trips.length).toBe(1)
    const all = limiter.checkMany(Array.from({ length: 300 }, () => ({ key: 'alice' })))
    await expect.poll(() => trips.length).toBe(3)
    clock.advance(3_600_000)
    letGo(1)
    await Promise.race([first, sleep(100)])
    letGo()
    const allowed = (await all).map((decision) => decision.allowed)
    expect(allowed).toEqual(Array.from({ length: 300 }, (_, i) => i < 199))
  })

  const seed = Math.floor(Math.random() * 2 ** 32)
  it(`of all kinds, batched, equal the model (seed ${seed})`, async () => {
    const random = seededRandom(seed)
    for (let round = 0; round < 12; round += 1) await playBursts(random, 25)
  })
})

const keys = ['a', 'b', 'c']

/** Plays bursts of batched calls with random rules against the model. */
async function playBursts(random: ReturnType<typeof seededRandom>, bursts: number) {
  const names = Object.keys(ruleMakers)
  const some = [random.pick(names), ...(random.below(2) ? [random.pick(names)] : [])]
  const draw = () => [...new Set(some)].map((name) => ruleMakers[name](random, name))
  const tiers: Rule[][] = [draw(), draw()]
  const { store, clock } = timedStore(redis.client)
  const policy = createPolicy({ tiers: { a: tiers[0], b: tiers[1] }, defaultTier: 'a' })
  const limiter = createLimiter(policy, { store, ...options })
  const model = createModel()
  await limiter.check('warm')
  for (let burst = 0; burst < bursts; burst += 1) {
    const nowUs = clock.nowUs()
    const answers: [Promise<Decision>, Decision][] = []
    const others: Promise<void>[] = []
    // Calls with different rules may be reordered, so all calls of a burst have the same rules.
    const [tier, rules] = random.below(4) ? (['a', tiers[0]] as const) : (['b', tiers[1]] as const)
    const capacity = Math.min(...rules.map((each) => each.capacity))
    for (const key of keys) {
      const expected = model.decide(key, rules, 1, nowUs, true)
      expect(await limiter.check(key, 1, { tier })).toEqual(expected)
    }
    for (let i = 0; i < 40; i += 1) {
      const key = random.pick(keys)
      const cost = Math.min(capacity, random.pick([1, 1, 1, 0, 2, 3, 7, capacity]))
      const verb = random.pick(['check', 'check', 'check', 'check', 'peek', 'charge', 'refund'])
      if (verb === 'check' || verb === 'peek') {
        const expected = model.decide(key, rules, cost, nowUs, verb === 'check')
        answers.push([limiter[verb](key, cost, { tier }), expected])
      } else if (verb === 'charge' || verb === 'refund') {
        model[verb](key, rules, cost, nowUs)
        others.push(limiter[verb](key, cost, { tier }))
      }
    }
    for (const [answer, expected] of answers) expect(await answer).toEqual(expected)
    await Promise.all(others)
    clock.advance(random.pick([0, 0.001, 1, 20, 1_000, 60_000]))
  }
}

/** Bugs of other limiters, put into the script. */
const bugs: [string, string, string][] = [
  ['a refusal is charged', 'if not admits(rules[i], states[i], cost) then return true end', ''],
  ['a refusal of any other call is charged', 'if pass(0) then', 'if pass(0) or true then'],
  ['nothing is written', "call('SET', key, text,", "redis.pcall('PING', key, text,"],
  ['nothing of any other call is written', "call('SET', row.key,", "redis.pcall('PING', row.key,"],
  [
    'digits are lost',
    's[1], s[2], s[3] = tonumber(a, 16)',
    's[1], s[2], s[3] = tonumber(a, 16) - 1',
  ],
  ['blocks are not looked at', 'row.block = whole(until_us)', 'row.block = 0'],
  ['cost is ignored', 'cost, requests = tonumber(word)', 'cost, requests = tonumber(word) and 1'],
  [
    'large products are rounded',
    'return ((ah * bh - ch * dh) * HALF + middle) * HALF + (al * bl - cl * dl)',
    'return a * b - c * d',
  ],
  ['time moves units', 'local sum = (s[1] > now and s[1] or now)', 'local sum = s[1]'],
]

describe('the suite, on a script with a bug:', () => {
  for (const [bug, good, bad] of bugs) {
    it(`notices that ${bug}`, async () => {
      let patched = 0
      const wire: Wire = (send, command, args) => {
        if (command === 'EVALSHA') return Promise.reject(new Error('NOSCRIPT'))
        const [text, ...rest] = args
        if (text.includes(good)) patched += 1
        return send(command, [text.replaceAll(good, bad), ...rest])
      }
      const complaints = await complaintsOf(wire)
      expect(patched).toBeGreaterThan(0)
      expect(complaints).not.toEqual([])
    })
  }

  it('accepts the unchanged script', async () => {
    const wire: Wire = (send, command, args) =>
      command === 'EVALSHA' ? Promise.reject(new Error('NOSCRIPT')) : send(command, args)
    expect(await complaintsOf(wire)).toEqual([])
  })
})

async function complaintsOf(wire: Wire): Promise<string[]> {
  const cases = storeSuite(() => timedStore(redis.client, wire), {
    steps: 250,
    evicts: false,
    seed: 7,
  })
  const complaints: string[] = []
  for (const { name, run } of cases.filter(({ name }) =>
    /token-bucket|gcra|block|cost/.test(name),
  )) {
    await run().catch((error) => complaints.push(`${name}: ${error}`))
  }
  return complaints
}
