import { once } from 'node:events'
import { connect } from 'node:net'
import fastify from 'fastify'
import { createLimiter, fixedWindow, leakyBucket, tokenBucket } from 'sluice'
import { rateLimit as forFastify } from 'sluice/fastify'
import { redisStore } from 'sluice/redis'
import { type Item, parseDictionary, parseList } from 'structured-headers'
import { afterEach, describe, expect, it } from 'vitest'
import { type CommonOptions, type Running, servers } from './http/servers.ts'

let running: Running | undefined
afterEach(async () => {
  await running?.close()
  running = undefined
})

const five = tokenBucket({ limit: 5, per: '1h' })

for (const [name, start] of Object.entries(servers)) {
  describe(name, () => {
    const open = async (options: CommonOptions) => {
      running = await start(options)
      const { port } = running
      return (headers: Record<string, string> = {}, method = 'GET') =>
        fetch(`http://127.0.0.1:${port}/`, { headers, method })
    }

    it('admits exactly the limit of a burst', async () => {
      const ask = await open({ rules: five })
      const all = await Promise.all(Array.from({ length: 30 }, () => ask()))
      expect(all.filter(({ status }) => status === 200)).toHaveLength(5)
      expect(all.filter(({ status }) => status === 429)).toHaveLength(25)
      expect(await all.find(({ ok }) => ok)?.text()).toBe('hello')
    })

    it.each([
      ['too long', 'x'.repeat(1_025)],
      ['very long', 'x'.repeat(10_000)],
      ['empty', ''],
    ])('counts a client whose key is %s', async (_what, key) => {
      const ask = await open({ rules: five, byHeaders: true })
      const statuses: number[] = []
      for (let i = 0; i < 7; i += 1) statuses.push((await ask({ 'x-key': key })).status)
      expect(statuses).toEqual([200, 200, 200, 200, 200, 429, 429])
    })

    it('admits exactly the limit of pipelined requests', async () => {
      await open({ rules: five })
      const socket = connect(running!.port, '127.0.0.1')
      const one = 'GET / HTTP/1.1\r\nHost: x\r\n'
      socket.write(`${`${one}\r\n`.repeat(11)}${one}Connection: close\r\n\r\n`)
      let text = ''
      socket.on('data', (data) => {
        text += data
      })
      await once(socket, 'close')
      const statuses = text.match(/HTTP\/1\.1 \d+/g)
      expect(statuses?.filter((line) => line.endsWith('200'))).toHaveLength(5)
      expect(statuses?.filter((line) => line.endsWith('429'))).toHaveLength(7)
    })

    it('sends rate-limit headers on success and on refusal', async () => {
      const minute = fixedWindow({ limit: 2, per: '1m', name: 'per "minute"' })
      const ask = await open({ rules: [minute, tokenBucket({ limit: 100, per: '1h', burst: 50 })] })
      const first = await ask()
      expect(first.headers.get('x-ratelimit-limit')).toBe('2')
      expect(first.headers.get('x-ratelimit-remaining')).toBe('1')
      const reset = Number(first.headers.get('x-ratelimit-reset')) - Date.now() / 1_000
      expect(reset).toBeGreaterThan(58)
      expect(reset).toBeLessThan(61)
      expect(itemsOf(first.headers.get('ratelimit-policy'))).toEqual([
        ['per "minute"', { q: 2, w: 60 }],
        ['token-bucket', { q: 100, w: 3_600, 'sluice-burst': 50 }],
      ])
      expect(itemsOf(first.headers.get('ratelimit'))).toEqual([
        ['per "minute"', { r: 1, t: 60 }],
        ['token-bucket', { r: 49, t: 1_764 }],
      ])
      await ask()
      const refused = await ask()
      expect(refused.status).toBe(429)
      expect(refused.headers.get('retry-after')).toBe('60')
      expect(refused.headers.get('content-type')).toMatch(/^application\/problem\+json/)
      expect(refused.headers.get('cache-control')).toBe('no-store')
      expect(itemsOf(refused.headers.get('ratelimit'))[0]).toEqual([
        'per "minute"',
        { r: 0, t: 60 },
      ])
      expect(await refused.json()).toEqual({
        type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
        title: 'Quota Exceeded',
        status: 429,
        detail: 'Too many requests. Try again in 60 seconds.',
        'violated-policies': ['per "minute"'],
      })
    })

    it('supports the older drafts', async () => {
      const ask = await open({ rules: five, headers: ['draft-7'] })
      const { headers } = await ask()
      expect(headers.get('x-ratelimit-limit')).toBeNull()
      const fields = parseDictionary(headers.get('ratelimit') ?? '')
      expect([...fields].map(([key, [value]]) => [key, value])).toEqual([
        ['limit', 5],
        ['remaining', 4],
        ['reset', 2_880],
      ])
      await running?.close()
      const six = await (await open({ rules: five, headers: ['draft-6'] }))()
      expect(six.headers.get('ratelimit-limit')).toBe('5')
      expect(six.headers.get('ratelimit-reset')).toBe('2880')
      expect(six.headers.get('ratelimit-policy')).toBe('5;w=3600')
    })

    it('sends the partition key by which a request is counted', async () => {
      const ask = await open({ rules: five, partitionHeader: 'x-key' })
      const { headers } = await ask({ 'x-key': 'alice' })
      for (const name of ['ratelimit', 'ratelimit-policy']) {
        const [[, parameters]] = parseList(headers.get(name) ?? '')
        const bytes = parameters.get('pk') as ArrayBuffer
        expect(new TextDecoder().decode(bytes)).toBe('alice')
      }
      expect((await ask()).headers.get('ratelimit')).not.toContain('pk')
    })

    it('admits a client that waits exactly for Retry-After', async () => {
      const ask = await open({ rules: tokenBucket({ limit: 1, per: 1_100 }) })
      await ask()
      const refused = await ask()
      expect(refused.headers.get('retry-after')).toBe('2')
      await new Promise((resolve) => setTimeout(resolve, 2_000))
      expect((await ask()).status).toBe(200)
    })

    it('counts HEAD and OPTIONS, but not CORS preflight requests', async () => {
      const ask = await open({ rules: five })
      const remaining = async (method: string, headers = {}) =>
        (await ask(headers, method)).headers.get('x-ratelimit-remaining')
      expect(await remaining('HEAD')).toBe('4')
      const preflight = { origin: 'https://a.example', 'access-control-request-method': 'GET' }
      await remaining('OPTIONS', preflight)
      // Nest knows no OPTIONS here, and asks guards only for routes that are there.
      if (name !== 'nest') expect(await remaining('OPTIONS')).toBe('3')
      // Whoever has no origin is no browser that asks.
      const posing = { 'access-control-request-method': 'GET' }
      if (name !== 'nest') expect(await remaining('OPTIONS', posing)).toBe('2')
      for (let i = 0; i < 6; i += 1) {
        const { headers } = await ask({ origin: 'https://a.example' })
        expect(headers.get('access-control-expose-headers')).toMatch(/RateLimit,.*Retry-After/)
      }
      await running?.close()
      const denied = await open({ rules: five, denyList: ['127.0.0.1'] })
      expect((await denied(preflight, name === 'nest' ? 'GET' : 'OPTIONS')).status).toBe(403)
    })

    it('takes key, cost and skip from the request', async () => {
      const ask = await open({ rules: five, byHeaders: true })
      const remaining = async (headers: Record<string, string>) =>
        (await ask(headers)).headers.get('x-ratelimit-remaining')
      expect(await remaining({ 'x-key': 'alice', 'x-cost': '3' })).toBe('2')
      expect(await remaining({ 'x-key': 'bob' })).toBe('4')
      expect(await remaining({ 'x-key': 'alice', 'x-skip': '1' })).toBeNull()
      // Without a key of its own it is known by its address.
      expect(await remaining({})).toBe('4')
      const never = await ask({ 'x-key': 'alice', 'x-cost': '6' })
      expect(never.status).toBe(429)
      expect(never.headers.get('retry-after')).toBeNull()
      const problem = await problemOf(never)
      expect(problem.detail).toContain('can never pass: "token-bucket" admits at most 5')
      expect(problem['violated-policies']).toEqual(['token-bucket'])
    })

    it('settles the final cost of a request', async () => {
      const limiter = createLimiter(five)
      const ask = await open({ limiter, byHeaders: true, finally: 0 })
      await Promise.all(Array.from({ length: 5 }, () => ask({ 'x-key': 'alice' })))
      await expect.poll(() => limiter.peek('alice').remaining).toBe(5)
      await running?.close()
      const dearer = await open({ limiter, byHeaders: true, finally: 3 })
      await dearer({ 'x-key': 'alice' })
      await expect.poll(() => limiter.peek('alice').remaining).toBe(2)
    })

    it.each<[string, object | string, string]>([
      ['an object', { error: 'slow down' }, 'application/json'],
      ['a text', 'slow down', 'text/plain'],
    ])('refuses with %s from onLimited, synchronous or asynchronous', async (_what, body, type) => {
      for (const answer of [(change: object) => change, async (change: object) => change]) {
        const ask = await open({
          rules: tokenBucket({ limit: 1, per: '1h' }),
          onLimited: ({ decision }) =>
            answer({ status: 420, body, fields: [['x-left', String(decision?.remaining)]] }),
        })
        expect((await ask()).status).toBe(200)
        const refused = await ask()
        const { headers } = refused
        expect([refused.status, headers.get('x-left'), headers.get('retry-after')]).toEqual([
          420,
          '0',
          '3600',
        ])
        // Nest's exception filter makes an object of a text.
        const isFiltered = name === 'nest' && typeof body === 'string'
        const sent = isFiltered ? { statusCode: 420, message: body } : body
        expect(headers.get('content-type')).toContain(isFiltered ? 'application/json' : type)
        expect(await refused.text()).toBe(typeof sent === 'string' ? sent : JSON.stringify(sent))
        await running?.close()
      }
    })

    it('reports an invalid result of onLimited', async () => {
      const ask = await open({
        rules: tokenBucket({ limit: 1, per: '1h' }),
        onLimited: () => ({ stauts: 503 }) as object,
        onError: (error) => expect(String(error)).toContain('"stauts"'),
      })
      expect((await ask()).status).toBe(200)
      expect((await ask()).status).toBe(500)
    })

    it('refuses no request in shadow mode, and sends no headers', async () => {
      const ask = await open({ rules: tokenBucket({ limit: 1, per: '1h' }), shadow: true })
      for (let i = 0; i < 3; i += 1) {
        const { status, headers } = await ask()
        expect([status, headers.get('ratelimit')]).toEqual([200, null])
      }
    })

    it('refuses blocked clients, in shadow mode too', async () => {
      const limiter = createLimiter(five)
      const ask = await open({ limiter, byHeaders: true, shadow: true })
      limiter.block('alice', '30s')
      const { status, headers } = await ask({ 'x-key': 'alice' })
      const fields = ['retry-after', 'ratelimit'].map((name) => headers.get(name))
      expect([status, ...fields]).toEqual([429, '30', null])
      expect((await ask({ 'x-key': 'bob' })).status).toBe(200)
    })

    it('holds a request for its slot in a leaky bucket', async () => {
      const ask = await open({ rules: leakyBucket({ limit: 10, per: '1s', queue: 5 }) })
      const startMs = performance.now()
      const all = await Promise.all([ask(), ask(), ask()])
      expect(all.map(({ status }) => status)).toEqual([200, 200, 200])
      expect(performance.now() - startMs).toBeGreaterThan(190)
    })

    it('ignores forged headers, and accepts only lists of addresses', async () => {
      const ask = await open({ rules: five })
      const all = await Promise.all(
        Array.from({ length: 10 }, (_, i) =>
          ask({ 'x-forwarded-for': `203.0.113.${i}`, forwarded: `for=203.0.113.${i}` }),
        ),
      )
      expect(all.filter(({ ok }) => ok)).toHaveLength(5)
      await running?.close()
      const trusting = await open({ rules: five, trustProxy: ['127.0.0.0/8'] })
      for (let i = 0; i < 6; i += 1) {
        expect((await trusting({ 'x-forwarded-for': `203.0.113.${i}` })).status).toBe(200)
      }
      await running?.close()
      const lists = await open({ rules: five, allowList: ['127.0.0.1'] })
      for (let i = 0; i < 6; i += 1) expect((await lists()).status).toBe(200)
      await running?.close()
      expect((await (await open({ rules: five, denyList: ['127.0.0.0/8'] }))()).status).toBe(403)
    })

    it('reports that a client is blocked, or that limits cannot be checked', async () => {
      const limiter = createLimiter(five)
      limiter.block('alice', '1m')
      const ask = await open({ limiter, byHeaders: true })
      const blocked = await ask({ 'x-key': 'alice' })
      expect(blocked.status).toBe(429)
      expect(await typeOf(blocked)).toContain('#abnormal-usage-detected')
      expect(blocked.headers.get('ratelimit')).toBe('"token-bucket";r=0;t=60')
      expect(blocked.headers.get('x-ratelimit-remaining')).toBe('0')
      await running?.close()
      const away = redisStore({ call: () => new Promise(() => {}) })
      const closed = createLimiter(five, { store: away, timeoutMs: 5, onStoreFailure: 'closed' })
      const refused = await (await open({ limiter: closed }))()
      expect([refused.status, refused.headers.get('ratelimit')]).toEqual([503, null])
      expect(await typeOf(refused)).toContain('#temporary-reduced-capacity')
    })
  })
}

it('explains how to register it if it is registered like other Fastify plugins', () => {
  expect(() => forFastify(fastify() as never)).toThrow(
    /got an app\. Write app\.register\(rateLimit/,
  )
})

const problemOf = async (response: Response) => (await response.json()) as Record<string, string>
const typeOf = async (response: Response) => (await problemOf(response)).type

/** Parses the items of a list with an independent parser: names and parameters. */
function itemsOf(field: string | null): [unknown, object][] {
  return (parseList(field ?? '') as Item[]).map(([value, parameters]) => [
    value,
    Object.fromEntries(parameters),
  ])
}
