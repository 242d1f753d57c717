import { type ChildProcess, fork } from 'node:child_process'
import { Redis } from 'ioredis'
import {
  type AsyncStore,
  createLimiter,
  defineAlgorithm,
  defineRule,
  type Rule,
  tokenBucket,
} from 'sluice'
import { redisStore } from 'sluice/redis'
import { storeSuite } from 'sluice/testing'
import { describe, expect, it } from 'vitest'
import { bucketLua } from '../packages/sluice/src/algorithms/lua/fresh-time.ts'
import { useRedis } from './redis/fixture.ts'
import { timedStore } from './redis/timed.ts'

const redis = useRedis()

const message = (child: ChildProcess) =>
  new Promise<unknown>((resolve, reject) => {
    child.once('message', resolve)
    child.once('exit', (code) => reject(new Error(`a node ended with ${code}`)))
  })

/** The units that a node admitted, by source and key. */
type Admitted = Record<string, Record<string, number>>

/** Runs a fleet of processes on the same keys, and calls `meanwhile` repeatedly. */
async function runFleet(rule: string, keys: string[], meanwhile?: () => Promise<unknown>) {
  const nodes = Array.from({ length: 4 }, (_, i) => {
    const job = { port: redis.server.port, rule, keys, calls: 3_000, clockHours: 5 * i - 7 }
    return fork(new URL('./redis/node.mjs', import.meta.url), [JSON.stringify(job)], {
      execArgv: [],
    })
  })
  try {
    await Promise.all(nodes.map(message))
    const ended = nodes.map(message)
    for (const node of nodes) node.send('go')
    let isOver = false
    let times = 0
    const all = Promise.all(ended).finally(() => {
      isOver = true
    })
    while (!isOver && meanwhile) {
      await meanwhile()
      times += 1
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    return { admitted: (await all) as Admitted[], times }
  } finally {
    for (const node of nodes) node.kill('SIGKILL')
  }
}

/** Returns the units of a key that the store admitted. */
const totalOf = (admitted: Admitted[], key: string) =>
  admitted.reduce((sum, { store = {} }) => sum + (store[key] ?? 0), 0)

describe('a fleet of processes whose clocks are hours apart', () => {
  it.each([
    '500/1h token-bucket',
    '500/1h fixed-window',
    '500/1h sliding-window-log',
    '500/1d sliding-window-counter',
  ])('admits exactly the limit of each key: %s', async (rule) => {
    const keys = ['alice', 'bob', '}{*'].map((key) => `${key} ${rule}`)
    const { admitted } = await runFleet(rule, keys)
    expect(admitted.flatMap(Object.keys).every((source) => source === 'store')).toBe(true)
    // With 500 per hour one unit refills every 7.2 s: up to two in this time.
    for (const key of keys) {
      expect(totalOf(admitted, key)).toBeGreaterThanOrEqual(500)
      expect(totalOf(admitted, key)).toBeLessThanOrEqual(rule.includes('bucket') ? 502 : 500)
    }
  })

  it('counts every call once while scripts are flushed', async () => {
    const { admitted, times } = await runFleet('1000/1h fixed-window', ['flushed'], () =>
      redis.client.script('FLUSH'),
    )
    expect(times).toBeGreaterThan(5)
    expect(totalOf(admitted, 'flushed')).toBe(1_000)
  })

  it('never admits more while connections are cut, and loses only calls that were cut off', async () => {
    const { admitted, times } = await runFleet('2000/1h fixed-window', ['cut'], () =>
      redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'),
    )
    expect(times).toBeGreaterThan(5)
    const total = totalOf(admitted, 'cut')
    expect(total).toBeLessThanOrEqual(2_000)
    expect(total).toBeGreaterThan(1_000)
  })
})

describe('on the wire', () => {
  it('no argument contains the time, except for the deadline', async () => {
    const monitor = await new Redis(redis.server.port, '127.0.0.1').monitor()
    const seen: string[][] = []
    monitor.on('monitor', (_time, args: string[]) => seen.push(args))
    const limiter = createLimiter(tokenBucket({ limit: 7, per: '1m' }), {
      store: redisStore(redis.client),
      name: 'wire',
    })
    await limiter.check('alice')
    await limiter.check('alice', 3)
    await expect.poll(() => seen.filter(isDecision)).toHaveLength(2)
    monitor.disconnect()
    const nowS = Date.now() / 1_000
    const isTime = (word: string) =>
      [1, 1e3, 1e6].some((unit) => Math.abs(Number(word) / unit - nowS) < 86_400)
    for (const [, , count, ...words] of seen.filter(isDecision)) {
      const [deadline, ...rest] = words.slice(Number(count))
      expect(rest.filter(isTime)).toEqual([])
      expect(isTime(deadline)).toBe(true)
      expect(rest.join(' ')).not.toMatch(/\d{10}/)
    }
    expect(seen.filter(([command]) => command === 'TIME').length).toBeGreaterThanOrEqual(2)
  })

  const isDecision = ([command]: string[]) => /^evalsha$/i.test(command)
})

describe('a user-defined algorithm', () => {
  const { algorithm } = tokenBucket({ limit: 1, per: '1s' })
  const lua = `
    local t = {}
    function t.wait(s, r, cost, now)
      return math.max(0, math.max(s[1] - now, 0) + cost * r.gap - r.full)
    end
    function t.spend(s, r, cost, now) s[1] = math.max(s[1], now) + cost * r.gap end
    function t.refund(s, r, cost, now) s[1] = math.max(s[1] - cost * r.gap, now) end
    function t.fresh(s) return s[1] end
    return t`

  it('runs on Redis if it brings its twin', async () => {
    const own = defineAlgorithm({ ...algorithm, name: 'own', lua, instant: false })
    const { store, clock } = timedStore(redis.client)
    const rule = defineRule(own, { limit: 10, per: '10s' })
    const limiter = createLimiter(rule, { store, timeoutMs: 5_000 })
    expect((await limiter.check('alice', 9)).remaining).toBe(1)
    expect((await limiter.check('alice', 2)).retryAfterMs).toBe(1_000)
    clock.advance(1_000)
    expect((await limiter.check('alice', 2)).remaining).toBe(0)
    await limiter.refund('alice', 5)
    expect((await limiter.peek('alice')).remaining).toBe(5)
  })

  it('is refused if its twin is not a string', () => {
    expect(() => defineAlgorithm({ ...algorithm, lua: 5 as never })).toThrow(/lua must be a text/)
  })

  it('needs no twin: without one the library reads, decides and swaps the row', async () => {
    expect(await complaintsAbout('', () => true)).toEqual([])
  })

  it('passes the suite with a correct twin, and fails it with a wrong one', async () => {
    const wrong = bucketLua.replace('cost * r.gap - r.full', 'cost * r.gap - 2 * r.full')
    expect(await complaintsAbout(bucketLua, isGcra)).toEqual([])
    expect(await complaintsAbout(wrong, isGcra)).toContain(
      'gcra admits a full burst, then one request per gap',
    )
  })

  const isGcra = (name: string) => name.startsWith('gcra')

  /** Returns the names of the cases that fail with this twin for these algorithms. */
  async function complaintsAbout(
    twin: string,
    isMeant: (name: string) => boolean,
  ): Promise<string[]> {
    const withTwin = (rule: Rule) =>
      isMeant(rule.algorithm.name)
        ? { ...rule, algorithm: defineAlgorithm({ ...rule.algorithm, lua: twin, instant: false }) }
        : rule
    const cases = storeSuite(
      () => {
        const { store, clock } = timedStore(redis.client)
        const twinned: AsyncStore = {
          ...store,
          clock,
          open(name, lists, timeoutMs) {
            const changed = lists.map((rules) => rules.map(withTwin))
            const table = store.open(name, changed, timeoutMs)
            return { ...table, use: (rules) => table.use(rules.map(withTwin)) }
          },
        }
        return { clock, store: twinned }
      },
      { steps: 250, evicts: false },
    )
    const complaints: string[] = []
    for (const { name, run } of cases.filter((each) => isMeant(each.name))) {
      await run().catch(() => complaints.push(name))
    }
    return complaints
  }
})
