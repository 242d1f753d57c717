import { Redis as Upstash } from '@upstash/redis'
import { createLimiter, fixedWindow, tokenBucket } from 'sluice'
import { redisStore } from 'sluice/redis'
import { manualClock, storeSuite } from 'sluice/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openRedis } from '../packages/sluice/src/stores/redis/redis.ts'
import { useRedis } from './redis/fixture.ts'
import { type HttpBridge, startHttpBridge } from './redis/http-bridge.ts'
import { START_US, TEST_CLOCK_LINE } from './redis/timed.ts'

// A trip over HTTP takes milliseconds, and other tests cover the scripts.
const steps = Number(process.env.SLUICE_STEPS ?? 100)
const redis = useRedis()
let bridge: HttpBridge
beforeAll(async () => {
  bridge = await startHttpBridge(redis.client)
})
afterAll(() => bridge.close())

const connect = (options = {}) =>
  new Upstash({ url: bridge.url, token: bridge.token, enableTelemetry: false, ...options })

let made = 0

/** Creates a store over HTTP whose scripts read the time of a manual clock. */
function timedStore() {
  made += 1
  const client = connect()
  const clock = manualClock(START_US)
  const timed = {
    evalsha: client.evalsha,
    async exec(command: [string, ...string[]]) {
      await redis.client.set('test-clock', String(clock.nowUs()))
      return client.exec(command)
    },
  }
  const store = openRedis(timed, { prefix: `http-${made}` }, clock, TEST_CLOCK_LINE)
  return { clock, store }
}

describe('redisStore over HTTP keeps the contract of stores:', () => {
  for (const { name, run } of storeSuite(timedStore, { steps, evicts: false })) {
    it(name, run, 60_000 + steps)
  }
})

describe('redisStore over HTTP', () => {
  it.each([
    ['as it is by default', {}],
    ['without deserialization', { automaticDeserialization: false }],
    ['without base64', { responseEncoding: false }],
    ['without pipelines', { enableAutoPipelining: false }],
  ])('admits exactly the limit from three clients at once, a client %s', async (name, options) => {
    const limiters = [1, 2, 3].map(() =>
      createLimiter(fixedWindow({ limit: 100, per: '1h' }), {
        ...{ store: redisStore(connect(options)), name, timeoutMs: 10_000 },
      }),
    )
    const checks = limiters.flatMap((limiter) => Array.from({ length: 70 }, () => limiter))
    const before = bridge.requests()
    const decisions = await Promise.all(checks.map((limiter) => limiter.check('alice')))
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(100)
    // Calls that wait for a trip are batched.
    expect(bridge.requests() - before).toBeLessThan(30)
  })

  it('recovers from a flushed script cache, and counts the call once', async () => {
    const limiter = createLimiter(tokenBucket({ limit: 10, per: '1h' }), {
      ...{ store: redisStore(connect()), name: 'flushed', timeoutMs: 10_000 },
    })
    await limiter.check('alice')
    await redis.client.script('FLUSH')
    expect((await limiter.check('alice')).remaining).toBe(8)
  })

  it('lists and removes keys that look like JSON', async () => {
    const limiter = createLimiter(tokenBucket({ limit: 10, per: '1h' }), {
      ...{ store: redisStore(connect(), { prefix: '7' }), name: '1', timeoutMs: 10_000 },
    })
    const keys = ['1', '1e3', 'null', 'true', '"a"', '[1,2]', '{"a":1}', 'é', '007']
    for (const key of keys) await limiter.check(key, 3)
    const listed: string[] = []
    for await (const { key, decision } of limiter.entries()) {
      listed.push(key)
      expect(decision.remaining).toBe(7)
    }
    expect(listed.sort()).toEqual([...keys].sort())
    await limiter.clear()
    expect(await limiter.size()).toBe(0)
  })

  it('decides by failure mode if no server answers', async () => {
    const away = connect({ url: 'http://127.0.0.1:1', retry: false })
    const limiter = createLimiter(tokenBucket({ limit: 10, per: '1h' }), {
      store: redisStore(away),
      name: 'away',
    })
    expect((await limiter.check('alice')).source).toBe('local')
    await limiter.close()
  })
})
