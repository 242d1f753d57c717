import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { concurrency } from '../algorithms/concurrency.ts'
import { leakyBucket } from '../algorithms/leaky-bucket.ts'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import { SluiceError } from '../core/errors.ts'
import type { Rule } from '../core/rule.ts'
import { createLimiter } from '../limiter/limiter.ts'
import { manualClock } from '../testing/manual-clock.ts'
import { throttled } from './throttled.ts'

let server: Server | undefined
afterEach(() => {
  vi.restoreAllMocks()
  server?.closeAllConnections()
  server?.close()
})

/** A server that answers as it is told, and notes when it was asked. */
async function serve(
  answer: (count: number) => { status: number; headers?: Record<string, string> },
  send = (response: ServerResponse) => void response.end(),
) {
  const times: number[] = []
  const asked: (string | undefined)[] = []
  const bodies: string[] = []
  server = createServer((request, response) => {
    times.push(performance.now())
    asked.push(request.url)
    request.setEncoding('utf8')
    let body = ''
    request.on('data', (text) => {
      body += text
    })
    request.on('end', () => {
      bodies.push(body)
      const { status, headers } = answer(times.length)
      send(response.writeHead(status, headers))
    })
  })
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  return { times, asked, bodies, url }
}

const turns = async () => {
  for (let i = 0; i < 10; i += 1) await new Promise((resolve) => setImmediate(resolve))
}

describe('throttled', () => {
  it('makes calls at the pace of the limit, in order', async () => {
    const { asked, url } = await serve(() => ({ status: 200 }))
    const clock = manualClock()
    const limiter = createLimiter(tokenBucket({ limit: 20, per: '1s', burst: 1 }), { clock })
    const get = throttled(fetch, { limiter })
    const all = [1, 2, 3, 4, 5].map((i) => get(`${url}${i}`))
    for (const expected of [['/1'], ['/1', '/2'], ['/1', '/2', '/3']]) {
      await expect.poll(() => asked).toEqual(expected)
      clock.advance(49.999)
      await new Promise((resolve) => setTimeout(resolve, 20))
      expect(asked).toEqual(expected)
      clock.advance(0.001)
    }
    await expect.poll(() => asked).toHaveLength(4)
    clock.advance(50)
    expect((await Promise.all(all)).every(({ ok }) => ok)).toBe(true)
  })

  it('leaves a server alone for as long as it asks, and only that one', async () => {
    const { times, url } = await serve((count) =>
      count === 1 ? { status: 429, headers: { 'retry-after': '1' } } : { status: 200 },
    )
    const limiter = createLimiter(tokenBucket({ limit: 100, per: '1s' }))
    const get = throttled(fetch, { limiter })
    expect((await get(url)).status).toBe(429)
    expect((await get(url)).status).toBe(200)
    expect(times[1] - times[0]).toBeGreaterThan(990)
    expect(limiter.peek('https://other.example').allowed).toBe(true)
  })

  it('does not shorten a pause, and does not lose a response to a store that fails', async () => {
    const answers: Record<string, string>[] = [
      { 'retry-after': '3600' },
      { ratelimit: '"x";r=0;t=1' },
    ]
    const { url } = await serve((count) => {
      const headers = answers[count - 1] ?? {}
      return { status: count === 1 ? 429 : 200, headers }
    })
    const limiter = createLimiter(tokenBucket({ limit: 100, per: '1s' }))
    const get = throttled(fetch, { limiter, key: 'a' })
    await Promise.all([get(url), get(url)])
    expect(limiter.peek('a').retryAfterMs).toBeGreaterThan(3_500_000)
    const failing: typeof limiter = {
      ...limiter,
      block() {
        throw new SluiceError('SLUICE_STORE_UNAVAILABLE', 'away')
      },
    }
    expect((await throttled(fetch, { limiter: failing, key: 'b' })(url)).status).toBe(200)
  })

  it('gives up at once when it would take too long, or when it is told to', async () => {
    const { times, url } = await serve(() => ({ status: 200 }))
    const limiter = createLimiter(tokenBucket({ limit: 1, per: '1h' }))
    const get = throttled(fetch, { limiter, key: 'api', maxWaitMs: 100 })
    await get(url)
    await expect(get(url)).rejects.toMatchObject({ code: 'SLUICE_WAIT_TOO_LONG' })
    const patient = throttled(fetch, { limiter, key: 'api', maxWaitMs: '2h' })
    const signal = AbortSignal.timeout(20)
    await expect(patient(url, { signal })).rejects.toMatchObject({ name: 'TimeoutError' })
    expect(times).toHaveLength(1)
  })

  it('takes key and cost from the request', async () => {
    const { url } = await serve(() => ({ status: 200 }))
    const limiter = createLimiter(tokenBucket({ limit: 10, per: '1h' }))
    const get = throttled(fetch, {
      limiter,
      key: (request) => request.headers.get('x-team') ?? 'none',
      cost: ({ method }) => (method === 'POST' ? 3 : 1),
    })
    await get(url, { method: 'POST', body: 'x', headers: { 'x-team': 'a' } })
    await get(new Request(url, { headers: { 'x-team': 'a' } }))
    expect(limiter.peek('a').remaining).toBe(6)
  })

  it('takes options that make sense', () => {
    expect(() => throttled(fetch, {} as never)).toThrow(/limiter must come from/)
    expect(() => throttled(5 as never, {} as never)).toThrow(/must be a fetch/)
  })

  it.each<[string, Rule]>([
    ['a bucket with a burst of 1', tokenBucket({ limit: 10, per: '1s', burst: 1 })],
    ['a leaky bucket', leakyBucket({ limit: 10, per: '1s', queue: 100 })],
  ])('never makes more than 10 calls in a second with %s', async (_, rule) => {
    const clock = manualClock()
    const atMs: number[] = []
    const get = throttled(
      async () => {
        atMs.push(clock.nowUs() / 1_000)
        return new Response(null)
      },
      { limiter: createLimiter(rule, { clock }) },
    )
    const all = Array.from({ length: 45 }, () => get('https://api.example/'))
    for (let ms = 0; ms <= 4_500; ms += 1) {
      await turns()
      clock.advance(1)
    }
    await Promise.all(all)
    const inSecond = atMs.map((fromMs) => atMs.filter((ms) => ms >= fromMs && ms < fromMs + 1_000))
    expect(Math.max(...inSecond.map(({ length }) => length))).toBe(10)
    expect(atMs).toHaveLength(45)
  })

  it('lets the higher priority go first, and tells how many wait', async () => {
    const clock = manualClock()
    const limiter = createLimiter(tokenBucket({ limit: 1, per: '1s' }), { clock })
    const order: string[] = []
    const get = throttled(
      async (input) => {
        order.push(new URL((input as Request).url).pathname)
        return new Response(null)
      },
      {
        limiter,
        key: 'api',
        priority: ({ headers }) => Number(headers.get('x-priority') ?? 0),
      },
    )
    const all = [get('https://a.example/first')]
    await turns()
    all.push(get('https://a.example/slow'))
    all.push(get('https://a.example/fast', { headers: { 'x-priority': '5' } }))
    await turns()
    expect([get.waiting(), get.waiting('api'), get.waiting('other')]).toEqual([2, 2, 0])
    for (let i = 0; i < 2; i += 1) {
      clock.advance(1_000)
      await turns()
    }
    await Promise.all(all)
    expect(order).toEqual(['/first', '/fast', '/slow'])
    expect(get.waiting()).toBe(0)
  })
})

describe('throttled by concurrency', () => {
  const one = () => createLimiter(concurrency({ limit: 1, hold: '1m' }))
  const held = (limiter: ReturnType<typeof one>) => limiter.stats().held

  it('releases when the body has been read to its end', async () => {
    let rest = () => {}
    const { asked, url } = await serve(
      () => ({ status: 200, headers: { 'x-test': 'yes' } }),
      (response) => {
        response.write('one ')
        rest = () => void response.end('two')
      },
    )
    const limiter = one()
    const get = throttled(fetch, { limiter, key: 'api' })
    const first = await get(`${url}first`)
    expect([first.status, first.ok, first.url, first.type, first.redirected]).toEqual([
      ...[200, true, `${url}first`, 'basic', false],
    ])
    expect(first.headers.get('x-test')).toBe('yes')
    const second = get(`${url}second`)
    await turns()
    expect([asked.length, held(limiter), get.waiting()]).toEqual([1, 1, 1])
    rest()
    expect(await first.text()).toBe('one two')
    rest = () => {}
    const answer = await second
    rest()
    expect(await answer.text()).toBe('one two')
    expect(asked).toEqual(['/first', '/second'])
    await expect.poll(() => held(limiter)).toBe(0)
  })

  it('releases when a body is cancelled, before and after its first part', async () => {
    const { url } = await serve(
      () => ({ status: 200 }),
      (response) => void response.write('endless'),
    )
    const limiter = one()
    const get = throttled(fetch, { limiter })
    await (await get(url)).body?.cancel()
    expect(held(limiter)).toBe(0)
    const reader = (await get(url)).body?.getReader()
    await reader?.read()
    expect(held(limiter)).toBe(1)
    await reader?.cancel()
    expect(held(limiter)).toBe(0)
  })

  it('releases when a body fails, and when its call is aborted', async () => {
    const { url } = await serve(
      () => ({ status: 200, headers: { 'content-length': '100' } }),
      (response) => void response.write('part', () => response.destroy()),
    )
    const limiter = one()
    const get = throttled(fetch, { limiter })
    await expect((await get(url)).text()).rejects.toThrow()
    expect(held(limiter)).toBe(0)
    const abort = new AbortController()
    await get(url, { signal: abort.signal })
    expect(held(limiter)).toBe(1)
    abort.abort()
    expect(held(limiter)).toBe(0)
  })

  it('releases at once when there is no body, or no response', async () => {
    const { url } = await serve((count) => ({ status: count === 1 ? 204 : 200 }))
    const limiter = one()
    const get = throttled(fetch, { limiter })
    await get(url)
    expect(held(limiter)).toBe(0)
    await expect(get('http://127.0.0.1:1/')).rejects.toThrow()
    expect(held(limiter)).toBe(0)
    const broken = throttled(fetch, { limiter: { ...limiter, peek: () => limiter.peek('') } })
    server?.removeAllListeners('request')
    server?.on('request', (_, response) => response.writeHead(429, { 'retry-after': '1' }).end())
    await expect(broken(url)).rejects.toThrow()
    expect(held(limiter)).toBe(0)
  })

  it('counts rates and what is held together', async () => {
    const { asked, url } = await serve(() => ({ status: 204 }))
    const clock = manualClock()
    const rules = [concurrency({ limit: 5, hold: '1m' }), tokenBucket({ limit: 1, per: '1s' })]
    const get = throttled(fetch, { limiter: createLimiter(rules, { clock }), key: 'api' })
    const all = [get(`${url}1`), get(`${url}2`)]
    await all[0]
    await turns()
    expect(asked).toEqual(['/1'])
    clock.advance(1_000)
    await all[1]
    expect(asked).toEqual(['/1', '/2'])
  })
})

describe('throttled with retries', () => {
  function made(retries: number, rule = tokenBucket({ limit: 1_000, per: '1s' })) {
    const clock = manualClock()
    const limiter = createLimiter(rule, { clock })
    vi.spyOn(Math, 'random').mockReturnValue(0.5)
    let answered = 0
    const counted: typeof fetch = async (...call) => {
      const response = await fetch(...call)
      answered += 1
      return response
    }
    /** Waits until so many responses have arrived, and what follows them is under way. */
    const arrived = async (count: number) => {
      await expect.poll(() => answered).toBe(count)
      await turns()
    }
    const get = throttled(counted, { limiter, key: 'api', retries, clock })
    return { clock, limiter, arrived, get }
  }

  it('sends again what was refused, with full jitter that grows', async () => {
    const { bodies, url } = await serve((count) => ({ status: count < 4 ? 503 : 200 }))
    const { clock, get, arrived } = made(5)
    const answer = get(url, { method: 'POST', body: 'again' })
    for (const [sent, waitMs] of [
      [1, 250],
      [2, 500],
      [3, 1_000],
    ]) {
      await arrived(sent)
      clock.advance(waitMs - 0.001)
      await turns()
      expect(bodies).toHaveLength(sent)
      clock.advance(0.001)
    }
    expect((await answer).status).toBe(200)
    expect(bodies).toEqual(['again', 'again', 'again', 'again'])
  })

  it('does not send again before Retry-After', async () => {
    const { bodies, url } = await serve((count) =>
      count === 1 ? { status: 429, headers: { 'retry-after': '7' } } : { status: 200 },
    )
    const { clock, get, arrived } = made(1)
    vi.spyOn(Math, 'random').mockReturnValue(0)
    const answer = get(url)
    await arrived(1)
    clock.advance(6_999.999)
    await turns()
    expect(bodies).toHaveLength(1)
    clock.advance(0.001)
    expect((await answer).status).toBe(200)
  })

  it('waits its turn again for each retry', async () => {
    const { asked, url } = await serve((count) => ({ status: count === 1 ? 429 : 200 }))
    const { clock, get, arrived } = made(1, tokenBucket({ limit: 1, per: '10s' }))
    const first = get(`${url}first`)
    await arrived(1)
    const second = get(`${url}second`)
    await turns()
    clock.advance(250)
    await turns()
    expect(get.waiting()).toBe(2)
    clock.advance(9_750)
    await second
    await turns()
    clock.advance(10_000)
    await first
    expect(asked).toEqual(['/first', '/second', '/first'])
  })

  it('hands over the last refusal, and one that asks for too long a pause', async () => {
    const { bodies, url } = await serve((count) => ({
      status: 429,
      ...(count > 2 && { headers: { 'retry-after': '31' } }),
    }))
    const { clock, get, arrived } = made(1)
    const answer = get(url)
    await arrived(1)
    clock.advance(250)
    expect((await answer).status).toBe(429)
    expect((await get(url)).status).toBe(429)
    expect(bodies).toHaveLength(3)
  })

  it('sends nothing again that it was not asked to, or cannot', async () => {
    const { bodies, url } = await serve(() => ({ status: 503 }))
    const { get, limiter } = made(3)
    const body = () => new Blob(['x']).stream()
    const stream = { method: 'POST', body: body(), duplex: 'half' } as RequestInit
    expect((await get(url, stream)).status).toBe(503)
    expect((await get(new Request(url, { method: 'POST', body: 'x' }))).status).toBe(503)
    expect((await throttled(fetch, { limiter })(url)).status).toBe(503)
    expect(bodies).toHaveLength(3)
  })

  it('ends with the signal of the call', async () => {
    const { bodies, url } = await serve(() => ({ status: 503 }))
    const { get, limiter, arrived } = made(3)
    const abort = new AbortController()
    const answer = get(url, { signal: abort.signal })
    await arrived(1)
    abort.abort(new Error('enough'))
    await expect(answer).rejects.toThrow('enough')
    expect(limiter.waiting('api')).toBe(0)
    expect(bodies).toHaveLength(1)
  })

  it('releases what it holds between the tries', async () => {
    const { bodies, url } = await serve((count) => ({ status: count === 1 ? 503 : 204 }))
    const clock = manualClock()
    const limiter = createLimiter(concurrency({ limit: 1, hold: '1m' }), { clock })
    vi.spyOn(Math, 'random').mockReturnValue(0.5)
    const answer = throttled(fetch, { limiter, retries: 1, clock })(url)
    await expect.poll(() => bodies).toHaveLength(1)
    await expect.poll(() => limiter.stats().held).toBe(0)
    await turns()
    clock.advance(250)
    expect((await answer).status).toBe(204)
  })

  it.each([{ retries: -1 }, { retries: 0.5 }, { retries: 101 }, { maxWaitMs: -1 }, { retry: 1 }])(
    'refuses the options %o',
    (options) => {
      const limiter = one()
      expect(() => throttled(fetch, { limiter, ...options })).toThrow(SluiceError)
    },
  )
})

const one = () => createLimiter(tokenBucket({ limit: 1, per: '1s' }))
