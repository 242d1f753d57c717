import { setTimeout } from 'node:timers/promises'
import { GlideClient } from '@valkey/valkey-glide'
import { Cluster } from 'ioredis'
import { createCluster } from 'redis'
import {
  type AsyncLimiter,
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  type Rule,
  slidingWindowLog,
  tokenBucket,
} from 'sluice'
import { redisStore } from 'sluice/redis'
import { manualClock, seededRandom, storeSuite } from 'sluice/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openRedis } from '../packages/sluice/src/stores/redis/redis.ts'
import { HELLO } from '../packages/sluice/src/stores/redis/script.ts'
import { slotOfName } from '../packages/sluice/src/stores/redis/slots.ts'
import { rowNames } from '../packages/sluice/src/stores/remote/names.ts'
import { hostileKeys } from '../packages/sluice/src/testing/hostile-keys.ts'
import { keysWhere, moveSlot, type RedisCluster, startCluster } from './redis/cluster.ts'
import { type Kind, kinds, type OpenClient, openCluster } from './redis/cluster-clients.ts'
import { tryEveryVerb } from './redis/every-verb.ts'
import {
  type Asked,
  type Callers,
  complaintsAbout,
  complaintsAboutOthers,
  type Failover,
  isBack,
  startCallers,
} from './redis/failover.ts'
import { startLagMeter } from './redis/load.ts'
import { caughtUp, HOST, isMaster } from './redis/nodes.ts'
import { startRedis } from './redis/server.ts'
import { until } from './redis/until.ts'

const PREFIX = 'test'
const keysOfAllSorts = [...hostileKeys, '%7b', '%', '}', '{}x', 'a}b{c', '}:', '😀', '\udc00\ud800']
/** A rule that refills nothing during a test. */
const limit = 1_000
const rule = fixedWindow({ limit, per: '1d' })

let cluster: RedisCluster
let clients: Record<Kind, OpenClient>

beforeAll(async () => {
  cluster = await startCluster(3, 2)
  const opened = kinds.map(async (kind) => [kind, await openCluster[kind](cluster)] as const)
  clients = Object.fromEntries(await Promise.all(opened)) as typeof clients
}, 120_000)
afterAll(async () => {
  for (const { close } of Object.values(clients ?? {})) close()
  await cluster?.stop()
})

/** Creates a limiter with its own store, and a timeout that suits a busy machine. */
function on(kind: Kind, name: string, rules: Rule | readonly Rule[] = rule): AsyncLimiter {
  const store = redisStore(clients[kind].client, { prefix: PREFIX })
  return createLimiter(rules, { store, name, share: true, timeoutMs: 5_000 })
}

/** Returns a function that names the rows of a limiter. */
function nameIn(limiter: string): (key: string) => string {
  return rowNames(PREFIX, limiter).nameOf
}

/** Returns the names of all keys on all masters. */
async function allNames(pattern: string): Promise<string[]> {
  const pages = cluster.masters.map(({ admin }) => admin.keys(pattern))
  return (await Promise.all(pages)).flat()
}

/** Returns the slots of names, as the server computes them. */
async function slotsOnServer(names: readonly string[]): Promise<number[]> {
  const { admin } = cluster.masters[0]
  return Promise.all(names.map(async (name) => Number(await admin.cluster('KEYSLOT', name))))
}

describe('slotOfName', () => {
  /** Returns the names whose computed slot differs from the server's. */
  async function misplaced(names: readonly string[], slot: (name: string) => number) {
    const slots = await slotsOnServer(names)
    return names.filter((name, i) => slots[i] !== slot(name))
  }
  const random = seededRandom(1)
  const parts = [...'{}%:*?[]\\ a1é\0\n', '%7b', '%ud800', '😀', '\ud83d', '\ude00', '\ud800']
  const randomKeys = Array.from({ length: 2_000 }, () =>
    Array.from({ length: 1 + random.below(12) }, () => random.pick(parts)).join(''),
  )

  it('is the slot on the server, for rows of hostile keys too', async () => {
    const names = [...keysOfAllSorts, ...randomKeys].map(nameIn('{slots}/'))
    expect(await misplaced(names, slotOfName)).toEqual([])
  })

  it('differs if braces stay in names, which proves the test above', async () => {
    const names = randomKeys.map((key) => `${PREFIX}:{${key.replace(/[{}]/g, '')}}a`)
    expect((await misplaced(names, slotOfName)).length).toBeGreaterThan(1_900)
  })

  it('is the same for all state of a key: several rules and a block', async () => {
    const rules = [
      rule,
      tokenBucket({ limit, per: '1d', name: '{a}' }),
      slidingWindowLog({ limit, per: '1d' }),
    ]
    const limiter = on('ioredis', 'one slot', rules)
    for (const key of keysOfAllSorts) {
      expect((await limiter.check(key)).source).toBe('store')
      await limiter.block(key, '1h')
      const names = await allNames(`${PREFIX}:one slot/*`)
      expect(names).toHaveLength(1)
      expect(await slotsOnServer(names)).toEqual([slotOfName(nameIn('one slot')(key))])
      await limiter.reset(key)
    }
  })
})

describe('redisStore on a Cluster keeps the contract of stores:', () => {
  let made = 0
  let ioredis: Cluster
  // This one waits until it has connected to a node.
  beforeAll(() => {
    ioredis = new Cluster(cluster.addresses)
  })
  afterAll(() => ioredis.disconnect())

  /**
   * Each script is told the time of a manual clock, as its last word: it may read no key of another
   * slot.
   */
  function make() {
    made += 1
    // Redis must not take the test's past for expired.
    const clock = manualClock(Date.UTC(2100, 0) * 1_000)
    const client = {
      nodes: (role: 'master') => ioredis.nodes(role),
      async call(command: string, args: string[]) {
        const nowUs = String(clock.nowUs())
        if (args[0] === HELLO) return nowUs
        return ioredis.call(command, command.startsWith('EVAL') ? [...args, nowUs] : args)
      },
    }
    const clockLine = 'local now = tonumber(ARGV[#ARGV])'
    return { clock, store: openRedis(client, { prefix: `suite-${made}` }, clock, clockLine) }
  }

  // Rows of different fields lie in different slots, and are spent from in two phases.
  const options = { steps: 500, evicts: false, fields: 'in turn' } as const
  for (const { name, run } of storeSuite(make, options)) it(name, run, 60_000)
})

describe.each(kinds)('a Cluster client of %s', (kind) => {
  it('supports every verb', () => tryEveryVerb(clients[kind].client))

  it('decides over fields with rows on different nodes, and spends nothing when one refuses', async () => {
    const store = redisStore(clients[kind].client, { prefix: PREFIX })
    const limiter = createLimiter(
      [
        fixedWindow({ limit: 60, per: '1d', by: 'user', name: 'requests' }),
        fixedWindow({ limit: 100, per: '1d', by: 'org', name: 'tokens' }),
        concurrency({ limit: 40, hold: '1h', by: 'org' }),
      ],
      { store, name: `${kind} fields`, timeoutMs: 5_000 },
    )
    const call = { requests: 1, tokens: 2, concurrency: 1 }
    const keys = Array.from({ length: 90 }, (_, i) => ({ user: `user ${i % 3}`, org: 'acme' }))
    const permits = await Promise.all(keys.map((key) => limiter.tryAcquire(key, call)))
    const given = permits.filter(({ allowed }) => allowed)
    // All at once: some are refused because of spends that are then taken back. Never more than the
    // limit.
    expect(given.length).toBeLessThanOrEqual(40)
    expect(given.length).toBeGreaterThan(0)
    const left = async (user: string) =>
      (await limiter.peek({ user, org: 'acme' })).rules.map(({ remaining }) => remaining)
    const byUser = await Promise.all([0, 1, 2].map(async (i) => (await left(`user ${i}`))[0]))
    const used = byUser.reduce((sum, remaining) => sum + 60 - remaining, 0)
    expect([used, ...(await left('user 0')).slice(1)]).toEqual([
      given.length,
      100 - 2 * given.length,
      40 - given.length,
    ])
    // One after the other, until one is refused.
    let admitted = given.length
    while ((await limiter.tryAcquire({ user: 'user 1', org: 'acme' }, call)).allowed) admitted += 1
    expect(admitted).toBe(40)
    for (const permit of given) if (permit.allowed) await permit.cancel()
    expect((await left('user 1'))[2]).toBe(given.length)
    await limiter.reset({ org: 'acme' })
    expect((await left('user 1')).slice(1)).toEqual([100, 40])
  })

  it('decides many requests in order, with keys on any node', async () => {
    const limiter = on(kind, `${kind} many`)
    const requests = Array.from({ length: 500 }, (_, i) => ({
      key: `key ${(i * 7) % 120}`,
      cost: 1 + (i % 3),
    }))
    const used = new Map<string, number>()
    const expected = requests.map(({ key, cost }) => {
      used.set(key, (used.get(key) ?? 0) + cost)
      return ['store', limit - used.get(key)!]
    })
    const decisions = await limiter.checkMany(requests)
    expect(decisions.map(({ source, remaining }) => [source, remaining])).toEqual(expected)
  })

  it('lists the keys of all masters once, and clears only its own', async () => {
    const [limiter, other] = [on(kind, `${kind} listed`), on(kind, `${kind} listed too`)]
    const nameOf = nameIn(`${kind} listed`)
    const spread = cluster.masters.flatMap((master) => cluster.keysOf(master, 60, nameOf))
    const keys = [...keysOfAllSorts, ...spread]
    await limiter.checkMany(keys.map((key) => ({ key })))
    await limiter.block('blocked', '1h')
    await other.checkMany(spread.map((key) => ({ key })))
    const listed: string[] = []
    for await (const { key, decision } of limiter.entries()) {
      listed.push(key)
      expect(decision.remaining).toBe(key === 'blocked' ? 0 : limit - 1)
    }
    expect(listed.sort()).toEqual([...keys, 'blocked'].sort())
    expect(await limiter.size()).toBe(keys.length + 1)
    await limiter.clear()
    expect(await limiter.size()).toBe(0)
    expect(await allNames(`${PREFIX}:${kind} listed/*`)).toEqual([])
    expect(await other.size()).toBe(spread.length)
  })

  it('keeps used units when the limits change, with another client too', async () => {
    const name = `${kind} changed`
    const keys = cluster.masters.flatMap((master) => cluster.keysOf(master, 5, nameIn(name)))
    const larger = fixedWindow({ limit: 5_000, per: '1d' })
    await on(kind, name).checkMany(keys.map((key) => ({ key, cost: 40 })))
    for (const [i, each] of kinds.entries()) {
      const decisions = await on(each, name, larger).checkMany(keys.map((key) => ({ key })))
      const found = decisions.map(({ source, remaining }) => [source, remaining])
      expect(found).toEqual(keys.map(() => ['store', 5_000 - 41 - i]))
    }
    const seen = await on(kind, name).peek(keys[0])
    expect(seen).toMatchObject({ source: 'store', remaining: limit - 43 })
  })

  it('counts a call once when one master has lost the script', async () => {
    const limiter = on(kind, `${kind} flushed`)
    const nameOf = nameIn(`${kind} flushed`)
    const keys = cluster.masters.map((master) => cluster.keysOf(master, 1, nameOf)[0])
    const [forgetful] = cluster.masters
    await limiter.checkMany(keys.map((key) => ({ key })))
    await forgetful.admin.script('FLUSH')
    await forgetful.admin.config('RESETSTAT')
    const decisions = await limiter.checkMany(keys.map((key) => ({ key })))
    expect(decisions.map(({ source }) => source)).toEqual(keys.map(() => 'store'))
    expect(decisions.map(({ remaining }) => remaining)).toEqual(keys.map(() => limit - 2))
    expect(await forgetful.admin.info('errorstats')).toContain('errorstat_NOSCRIPT:count=1')
  })

  it('batches calls of one slot, and makes one trip per other slot', async () => {
    const limiter = on(kind, `${kind} gathered`)
    const [master] = cluster.masters
    const nameOf = nameIn(`${kind} gathered`)
    const slotIn = (key: string) => slotOfName(nameOf(key))
    const [first] = cluster.keysOf(master, 1, nameOf)
    const mates = keysWhere((key) => slotIn(key) === slotIn(first), 4)
    const ofEachSlot = new Map(cluster.keysOf(master, 100, nameOf).map((key) => [slotIn(key), key]))
    const strangers = [...ofEachSlot.values()]
    const tripsFor = async (keys: readonly string[], calls: number) => {
      await master.admin.config('RESETSTAT')
      const all = Array.from({ length: calls }, (_, i) => limiter.check(keys[i % keys.length]))
      for (const { source } of await Promise.all(all)) expect(source).toBe('store')
      const stats = await master.admin.info('commandstats')
      return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1])
    }
    await tripsFor(mates, 1)
    // The first one at once, and the others in batches of 128.
    expect(await tripsFor(mates, 500)).toBeLessThanOrEqual(1 + Math.ceil(499 / 128))
    expect(await tripsFor(strangers, strangers.length)).toBe(strangers.length)
    expect((await limiter.peek(mates[3])).remaining).toBe(limit - 125)
  })

  it('follows a slot that moves to another master', async () => {
    const limiter = on(kind, `${kind} moved`)
    const [, from, to] = cluster.masters
    const nameOf = nameIn(`${kind} moved`)
    const key = cluster.keysOf(from, 100, nameOf).at(-1 - kinds.indexOf(kind))!
    await limiter.check(key, 7)
    await moveSlot(slotOfName(nameOf(key)), from, to, async () => {
      // A row is one name, which is served wherever it is.
      const quick = createLimiter(rule, {
        store: redisStore(clients[kind].client, { prefix: PREFIX }),
        name: `${kind} moved`,
        share: true,
        timeoutMs: 100,
      })
      expect((await quick.check(key)).source).toBe('store')
    })
    expect(await limiter.check(key)).toMatchObject({ source: 'store', remaining: limit - 9 })
  })
})

describe('a Cluster client that has just been made', () => {
  const keys = Array.from({ length: 30 }, (_, i) => ({ key: `key ${i}` }))

  it.each([{}, { lazyConnect: true }])('lists all keys with ioredis: %o', async (options) => {
    await on('ioredis', 'fresh').checkMany(keys)
    const client = new Cluster(cluster.addresses.slice(0, 1), options)
    const store = redisStore(client, { prefix: PREFIX })
    const size = await createLimiter(rule, {
      store,
      name: 'fresh',
      share: true,
      timeoutMs: 5_000,
    }).size()
    client.disconnect()
    expect(size).toBe(keys.length)
  })

  it('rejects clear with node-redis', async () => {
    const client = createCluster({ rootNodes: [{ socket: cluster.addresses[0] }] })
    const limiter = createLimiter(rule, { store: redisStore(client, { prefix: PREFIX }) })
    await expect(limiter.clear()).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })
    await expect(limiter.size()).rejects.toThrow('not connected')
  })
})

describe('Cluster clients of all kinds together', () => {
  it('admit exactly the limit', async () => {
    const few = tokenBucket({ limit: 50, per: '1d' })
    const limiters = kinds.flatMap((kind) => [on(kind, 'exact', few), on(kind, 'exact', few)])
    const keys = cluster.masters.flatMap((master) => cluster.keysOf(master, 2, nameIn('exact')))
    const calls = keys.flatMap((key) =>
      Array.from({ length: 120 }, async (_, i) => {
        const { allowed, source } = await limiters[i % limiters.length].check(key)
        expect(source).toBe('store')
        return allowed ? [key] : []
      }),
    )
    const admitted = (await Promise.all(calls)).flat()
    expect(keys.map((key) => admitted.filter((each) => each === key).length)).toEqual(
      keys.map(() => 50),
    )
  })

  it('spend from several rules together or from none', async () => {
    const rules = [
      tokenBucket({ limit: 40, per: '1d', name: 'a' }),
      gcra({ limit: 30, per: '1d', name: 'b' }),
      fixedWindow({ limit: 500, per: '1d', name: 'c' }),
    ]
    const limiters = kinds.map((kind) => on(kind, 'several', rules))
    const calls = Array.from({ length: 150 }, (_, i) => limiters[i % 3].check('alice'))
    const admitted = (await Promise.all(calls)).filter(({ allowed }) => allowed)
    const seen = await limiters[0].peek('alice')
    const { capacity } = rules[1]
    expect(admitted).toHaveLength(capacity)
    expect(seen.rules.map(({ remaining }) => remaining)).toEqual([40 - capacity, 0, 500 - capacity])
  })
})

describe('a valkey-glide client of a single server', () => {
  it('supports every verb', async () => {
    const server = await startRedis('--bind', HOST)
    const addresses = [{ host: HOST, port: server.port }]
    try {
      const client = await GlideClient.createClient({ addresses })
      await tryEveryVerb(client).finally(() => client.close())
    } finally {
      await server.stop()
    }
  })
})

const losses = [
  { loss: 'is killed', place: 0, signal: 'SIGKILL' },
  { loss: 'is stopped', place: 1, signal: 'SIGSTOP' },
] as const

describe.each(losses)('when a master $loss under load, and its replica takes over', (each) => {
  const { loss, place, signal } = each
  const timeoutMs = 200
  const policies = { ioredis: 'local', 'node-redis': 'open', 'valkey-glide': 'closed' } as const
  const lost = {} as Record<Kind, Failover>
  const others = {} as Record<Kind, Failover>
  const told = {} as Record<Kind, string[]>
  const limiters = {} as Record<Kind, AsyncLimiter>

  /** Returns keys of the lost master, the first of which gets no load, and keys of the others. */
  function keysFor(kind: Kind) {
    const { masters, keysOf } = cluster
    const nameOf = nameIn(`${kind} ${loss}`)
    const [steady, ...mine] = keysOf(masters[place], 9, nameOf)
    const theirs = [1, 2].flatMap((i) => keysOf(masters[(place + i) % 3], 4, nameOf))
    return { steady, mine, theirs }
  }

  function startLoad(kind: Kind, keys: readonly string[]): Callers {
    told[kind] = []
    limiters[kind] = createLimiter(rule, {
      store: redisStore(clients[kind].client, { prefix: PREFIX }),
      name: `${kind} ${loss}`,
      share: true,
      timeoutMs,
      onStoreFailure: policies[kind],
      onDegraded: () => told[kind].push('degraded'),
      onRecovered: () => told[kind].push('recovered'),
    })
    return startCallers(limiters[kind], keys)
  }

  beforeAll(async () => {
    const { masters, replicas } = cluster
    for (const kind of kinds) {
      const { steady, mine, theirs } = keysFor(kind)
      const used = [steady, ...mine, ...theirs].map((key) => ({ key, cost: 7 }))
      await on(kind, `${kind} ${loss}`).checkMany(used)
    }
    await caughtUp(masters[place], replicas[place])
    const lag = startLagMeter()
    const loads = kinds.map((kind) => {
      const { mine, theirs } = keysFor(kind)
      return startLoad(kind, [...mine, ...theirs])
    })
    const isBackFor = (i: number) => isBack(loads[i].calls, keysFor(kinds[i]).mine)
    await setTimeout(500)
    const lostMs = performance.now()
    masters[place].server.process.kill(signal)
    await until(() => isMaster(replicas[place]), 'the replica is the master')
    // Only ioredis notices by itself that a stopped master has been replaced.
    await until(() => isBackFor(0), 'the store decides again')
    masters[place].server.process.kill('SIGCONT')
    for (const i of kinds.keys()) await until(() => isBackFor(i), 'so it does for all')
    await setTimeout(500)
    await Promise.all(loads.map(({ stop }) => stop()))
    lag.stop()
    for (const [i, kind] of kinds.entries()) {
      const figures = { policy: policies[kind], timeoutMs, lagMs: lag.longestMs(), lostMs }
      const { calls } = loads[i]
      const { mine } = keysFor(kind)
      lost[kind] = { ...figures, calls: calls.filter(({ key }) => mine.includes(key)) }
      others[kind] = { ...figures, calls: calls.filter(({ key }) => !mine.includes(key)) }
    }
  }, 60_000)

  it.each(kinds)('calls of its slots follow the policy, and the store recovers: %s', (kind) => {
    expect(complaintsAbout(lost[kind])).toEqual([])
    expect(told[kind]).toContain('degraded')
    expect(told[kind].at(-1)).toBe('recovered')
  })

  it.each(kinds)('calls of other slots are decided by the store all the time: %s', (kind) => {
    expect(complaintsAboutOthers(others[kind])).toEqual([])
  })

  it.each(kinds)(
    'replicated units are still used, and replicated keys listed: %s',
    async (kind) => {
      const { steady } = keysFor(kind)
      const seen = await limiters[kind].peek(steady)
      expect(seen).toMatchObject({ source: 'store', remaining: limit - 7 })
      expect(await on(kind, `${kind} ${loss}`).size()).toBe(9 + 8)
    },
  )

  it('the checks notice a missing failover, and wrong decisions', () => {
    const good = lost.ioredis
    const [first] = good.calls
    const after = { ...first, startMs: good.lostMs + 1, endMs: good.lostMs + 2 }
    const complaints = (...calls: Asked[]) => complaintsAbout({ ...good, calls }).join()
    expect(complaints(first, after)).toBe('no fail-over showed')
    expect(complaints(first, { ...after, source: 'local' })).toContain('did not come back')
    expect(complaints(first, { ...after, source: 'open' })).toContain('open decided')
    expect(complaints(...good.calls, { ...after, error: 'no' })).toContain('1 calls threw')
    expect(complaints(...good.calls, { ...after, endMs: Infinity })).toContain('took Infinity')
    expect(complaintsAboutOthers(good)).toHaveLength(1)
  })
})
