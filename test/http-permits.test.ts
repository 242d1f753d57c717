import { createServer, type RequestListener, ServerResponse } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import fastify from 'fastify'
import { concurrency, createLimiter, tokenBucket } from 'sluice'
import { rateLimit as forFastify } from 'sluice/fastify'
import { rateLimit as forNode, rateLimitOf } from 'sluice/node'
import { redisStore } from 'sluice/redis'
import { redisStandIn } from 'sluice/testing'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type PermitOptions, permitServers } from './http/permit-servers.ts'
import type { Running } from './http/servers.ts'

const closers: (() => unknown)[] = []
beforeEach(() => {
  for (const kind of ['error', 'info'] as const) vi.spyOn(console, kind).mockReturnValue()
})
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
  vi.restoreAllMocks()
})

const LIMIT = 40
const held = concurrency({ limit: LIMIT, hold: '10m', name: 'held' })
const requests = tokenBucket({ limit: 1_000, per: '100d', name: 'requests' })

type Start = (options: PermitOptions) => Promise<Running>

async function open(start: Start, options: PermitOptions): Promise<number> {
  const { port, close } = await start(options)
  closers.push(close)
  return port
}

async function listen(listener: RequestListener): Promise<Running> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  const close = async () => {
    server.closeAllConnections()
    server.close()
  }
  return { port, close }
}

/** Opens a client that sends `times` requests on one connection, and does not read. */
function ask(port: number, path: string, times = 1): Socket {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(times))
  return socket
}

type Kill = (socket: Socket) => unknown
const reset: Kill = (socket) => socket.resetAndDestroy()
const leave: Kill = (socket) => socket.destroy()

interface Killing {
  readonly path: string
  readonly kill: Kill
  /** Requests on one connection. */
  readonly times?: number
  /** Decides this much later. */
  readonly laterMs?: number
}

/** Returns the held and remaining units after clients were killed during their requests. */
async function afterKilling(start: Start, { path, kill, times = 1, laterMs }: Killing) {
  const limiter = createLimiter([held, requests])
  const reached = vi.fn()
  const entered = vi.fn(async () => {
    await sleep(laterMs)
    return false
  })
  const isLater = laterMs !== undefined
  const port = await open(start, {
    limiter,
    key: () => 'alice',
    reached,
    ...(isLater ? { skip: entered } : {}),
  })
  const clients = Array.from({ length: 12 / times }, () => ask(port, path, times))
  // Node calls the handler of a pipelined request while earlier ones are in progress.
  await expect.poll(() => (isLater ? entered : reached).mock.calls.length).toBe(12)
  for (const client of clients) kill(client)
  await expect
    .poll(() => limiter.stats().held, { timeout: 2_000 })
    .toBe(0)
    .catch(() => {})
  if (isLater) await sleep(laterMs + 50)
  return { held: limiter.stats().held, left: limiter.peek('alice').rules[0].remaining }
}

const nothing = { held: 0, left: LIMIT }

describe.each(Object.keys(permitServers))('%s', (name) => {
  const start = permitServers[name]

  it.each<[string, Killing]>([
    ['wait for an answer', { path: '/hang', kill: reset }],
    ['wait for an answer, and leave', { path: '/hang', kill: leave }],
    ['read a stream', { path: '/stream', kill: reset }],
    ['are about to be answered', { path: '/late', kill: reset }],
    ['have pipelined', { path: '/hang', kill: reset, times: 6 }],
    ['have not been decided about yet', { path: '/hang', kill: reset, laterMs: 50 }],
    ['have pipelined, undecided', { path: '/hang', kill: leave, laterMs: 50, times: 6 }],
  ])('holds nothing for killed clients that %s', async (_what, killing) => {
    // It knows only what the platform reports, and this one does not report pipelined requests.
    if (name === 'hono elsewhere' && killing.times) return
    expect(await afterKilling(start, killing)).toEqual(nothing)
  })

  it('releases when a response ends in any way', async () => {
    const limiter = createLimiter([held, requests])
    const port = await open(start, { limiter, key: () => 'alice' })
    const url = `http://127.0.0.1:${port}`
    const statuses: number[] = []
    for (const [path, method] of [
      ['/text', 'GET'],
      ['/text', 'HEAD'],
      ['/late', 'GET'],
      ['/throw', 'GET'],
      ['/stream', 'HEAD'],
    ]) {
      // An endless stream for HEAD is sent without its body, or not at all.
      const signal = AbortSignal.timeout(500)
      const asked = fetch(url + path, { method, signal }).then(
        async (response) => {
          await response.text()
          statuses.push(response.status)
        },
        () => statuses.push(0),
      )
      await asked
      await expect.poll(() => limiter.stats().held).toBe(0)
    }
    expect(statuses.slice(0, 4)).toEqual([200, 200, 200, 500])
    expect(limiter.peek('alice').rules[0].remaining).toBe(LIMIT)
  })

  it('refuses requests above the concurrency limit, and admits again when one has ended', async () => {
    const rules = [concurrency({ limit: 2, hold: '1m', name: 'held', by: 'address' })]
    const reached = vi.fn()
    const port = await open(start, { rules, reached })
    const url = `http://127.0.0.1:${port}/text`
    const [first] = [ask(port, '/hang'), ask(port, '/stream')]
    await expect.poll(() => reached.mock.calls.length).toBe(2)
    const refused = await fetch(url)
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toBe('1')
    expect(refused.headers.get('ratelimit')).toBe('"held";r=0')
    expect(refused.headers.get('ratelimit-policy')).toBe('"held";q=2;qu="concurrent-requests"')
    expect(refused.headers.get('x-ratelimit-limit')).toBeNull()
    expect(await refused.text()).toContain('Too many requests at once.')
    first.destroy()
    await expect.poll(async () => (await fetch(url)).status).toBe(200)
  })

  it('lets handlers read the decision and the permit', async () => {
    const text = async (options: PermitOptions) => {
      const port = await open(start, options)
      return (await fetch(`http://127.0.0.1:${port}/text`)).text()
    }
    expect(await text({ rules: requests })).toBe('[true,null]')
    expect(await text({ rules: requests, permit: true })).toBe('[true,true]')
    expect(await text({ rules: [requests, held] })).toBe('[true,true]')
    const one = tokenBucket({ limit: 1, per: '1h' })
    expect(await text({ rules: one, cost: 2, shadow: true })).toBe('[null,null]')
    expect(await text({ rules: one, skip: () => true })).toBe('[null,null]')
  })

  it('does not change a cost that the handler has settled', async () => {
    const limiter = createLimiter(requests)
    const finalCost = vi.fn(() => 500)
    const port = await open(start, { limiter, key: () => 'alice', cost: 100, finalCost })
    await (await fetch(`http://127.0.0.1:${port}/settle`)).text()
    await expect.poll(() => finalCost.mock.calls.length).toBe(1)
    expect(limiter.peek('alice').remaining).toBe(993)
  })

  it('calls finalCost once, and tells it about an abort', async () => {
    const limiter = createLimiter(requests)
    const aborts: boolean[] = []
    const reached = vi.fn()
    const finalCost = (_request: unknown, _response: unknown, ending: { aborted: boolean }) => {
      aborts.push(ending.aborted)
      return ending.aborted ? 30 : 50
    }
    const options = { limiter, key: () => 'alice', cost: 100, finalCost, reached }
    const port = await open(start, options)
    await (await fetch(`http://127.0.0.1:${port}/text`)).text()
    await expect.poll(() => limiter.peek('alice').remaining).toBe(950)
    for (const [i, path] of ['/hang', '/stream'].entries()) {
      const client = ask(port, path)
      await expect.poll(() => reached.mock.calls.length).toBe(i + 2)
      client.resetAndDestroy()
      await expect.poll(() => aborts.length).toBe(i + 2)
    }
    expect([aborts, limiter.peek('alice').remaining]).toEqual([[false, true, true], 890])
  })

  it('refunds nothing to a client that hangs up if finalCost reads only the status', async () => {
    const limiter = createLimiter(requests)
    const reached = vi.fn()
    const finalCost = vi.fn(() => 0)
    const port = await open(start, { limiter, key: () => 'alice', finalCost, reached })
    for (let i = 1; i <= 5; i += 1) {
      const client = ask(port, '/hang')
      await expect.poll(() => reached.mock.calls.length).toBe(i)
      client.resetAndDestroy()
    }
    await expect.poll(() => finalCost.mock.calls.length).toBe(5)
    expect(limiter.peek('alice').remaining).toBe(995)
  })

  it('supports keys with fields', async () => {
    const rules = [
      tokenBucket({ limit: 9, per: '1h', by: 'user', name: 'user' }),
      tokenBucket({ limit: 2, per: '1h', by: 'address', name: 'address' }),
      concurrency({ limit: 5, hold: '1m', by: 'global', name: 'held' }),
    ]
    const cost = { user: () => 4, address: 1, held: 1 }
    const port = await open(start, { rules, key: () => ({ user: 'alice' }), cost })
    const url = `http://127.0.0.1:${port}/text`
    const all = [await fetch(url), await fetch(url), await fetch(url)]
    expect(all.map(({ status }) => status)).toEqual([200, 200, 429])
    expect(all[1].headers.get('ratelimit')).toMatch(
      /"user";r=1;t=\d+, "address";r=0;t=1800, "held";r=4/,
    )
    expect(((await all[2].json()) as Record<string, unknown>)['violated-policies']).toEqual([
      'user',
      'address',
    ])
  })

  it('answers a bug of the application with 500, and holds nothing', async () => {
    const limiter = createLimiter([concurrency({ limit: 5, hold: '1m', by: 'user', name: 'held' })])
    const wrong = [{ usr: 'alice' }, { user: undefined }, 'alice', undefined]
    let key: unknown
    const port = await open(start, { limiter, key: () => key as string })
    for (key of wrong) expect((await fetch(`http://127.0.0.1:${port}/text`)).status).toBe(500)
    expect(limiter.stats().held).toBe(0)
  })

  it('releases on an asynchronous store', async () => {
    const server = redisStandIn(() => Date.now() * 1_000)
    const store = redisStore({ call: async (command, args) => server.call(command, args) })
    const limiter = createLimiter([held, requests], { store, timeoutMs: 5_000 })
    const reached = vi.fn()
    const port = await open(start, { limiter, key: () => 'alice', reached })
    await (await fetch(`http://127.0.0.1:${port}/text`)).text()
    const clients = [ask(port, '/hang'), ask(port, '/stream')]
    await expect.poll(() => reached.mock.calls.length).toBe(3)
    for (const client of clients) client.destroy()
    await expect.poll(() => limiter.stats().held).toBe(0)
    await expect.poll(async () => (await limiter.peek('alice')).rules[0].remaining).toBe(LIMIT)
  })

  it('adds no listener to a connection for each of its requests', async () => {
    const warned = vi.fn()
    process.on('warning', warned)
    closers.push(() => process.off('warning', warned))
    const limiter = createLimiter([held, requests])
    const reached = vi.fn()
    const port = await open(start, { limiter, key: () => 'alice', reached })
    const socket = ask(port, '/text', 30).resume()
    await expect.poll(() => reached.mock.calls.length).toBe(30)
    await expect.poll(() => limiter.stats().held).toBe(0)
    socket.write('GET /text HTTP/1.1\r\nHost: x\r\n\r\n')
    await expect.poll(() => reached.mock.calls.length).toBe(31)
    await expect.poll(() => limiter.stats().held).toBe(0)
    socket.destroy()
    await sleep(10)
    expect(warned).not.toHaveBeenCalled()
  })
})

/** Servers that release as hand-written code often does, and the requests on which they leak. */
const twins: Record<string, { on: string; killing: Killing }> = {
  'ignores clients that leave': { on: 'finish', killing: { path: '/hang', kill: reset } },
  'ignores pipelined requests': { on: 'close', killing: { path: '/hang', kill: reset, times: 6 } },
}

describe.each(Object.keys(twins))('a server that %s', (name) => {
  it('fails this test', async () => {
    const { on, killing } = twins[name]
    const start: Start = ({ limiter, reached }) =>
      listen((_request, response) => {
        const permit = limiter!.tryAcquire('alice' as never) as { release(): void }
        response.once(on, () => permit.release())
        reached?.(undefined)
      })
    expect((await afterKilling(start, killing)).held).toBeGreaterThanOrEqual(10)
  })
})

describe('plain http', () => {
  const started = (act: (response: ServerResponse, permitHeld: () => number) => unknown) => {
    const limiter = createLimiter(held)
    const limit = forNode({ limiter, key: () => 'alice' })
    const count = () => limiter.stats().held
    const listener: RequestListener = (request, response) => {
      try {
        limit(request, response, () => act(response, count))
      } catch {
        // The response stays open.
      }
    }
    return { limiter, limit, count, start: () => listen(listener) }
  }

  it('releases when a handler throws at once, though its response stays open', async () => {
    const { count, start } = started(() => {
      throw new Error('of the handler')
    })
    const port = await open(start, {} as never)
    const client = ask(port, '/')
    await sleep(50)
    expect(count()).toBe(0)
    client.destroy()
  })

  it('holds while early hints are sent, until the response ends', async () => {
    const seen: number[] = []
    const { count, start } = started((response, held) => {
      response.writeEarlyHints({ link: '</a.css>; rel=preload' }, async () => {
        seen.push(held())
        await sleep(20)
        seen.push(held())
        response.end('hello')
      })
    })
    const port = await open(start, {} as never)
    expect(await (await fetch(`http://127.0.0.1:${port}`)).text()).toBe('hello')
    await expect.poll(count).toBe(0)
    expect(seen).toEqual([1, 1])
  })

  it('holds for as long as a connection speaks another protocol', async () => {
    const limiter = createLimiter(held)
    const limit = forNode({ limiter, key: () => 'alice' })
    const server = createServer()
    server.on('upgrade', (request, socket) => {
      const response = new ServerResponse(request)
      response.assignSocket(socket as Socket)
      socket.resume().on('end', () => socket.end())
      limit(request, response, () => {
        expect(rateLimitOf(request)?.permit).toBeDefined()
        response.detachSocket(socket as Socket)
        socket.write(
          'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n',
        )
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    closers.push(() => server.close())
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
    client.write('GET / HTTP/1.1\r\nHost: x\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n')
    await new Promise((resolve) => client.once('data', resolve))
    await sleep(20)
    expect(limiter.stats().held).toBe(1)
    client.destroy()
    await expect.poll(() => limiter.stats().held).toBe(0)
  })
})

describe('Fastify', () => {
  it('holds nothing for killed HTTP/2 streams, together or one by one', async () => {
    const limiter = createLimiter(held)
    const app = fastify({ http2: true })
    closers.push(() => app.close())
    await app.register(forFastify({ limiter, key: () => 'alice' }))
    app.get('/', () => new Promise(() => {}))
    await app.listen({ port: 0, host: '127.0.0.1' })
    const { port } = app.server.address() as AddressInfo
    const session = connectHttp2(`http://127.0.0.1:${port}`).on('error', () => {})
    const streams = Array.from({ length: 12 }, () => session.request({ ':path': '/' }))
    for (const stream of streams) stream.on('error', () => {})
    await expect.poll(() => limiter.stats().held).toBe(12)
    for (const stream of streams.slice(0, 6)) stream.close()
    await expect.poll(() => limiter.stats().held).toBe(6)
    session.destroy()
    await expect.poll(() => limiter.stats().held).toBe(0)
  })

  it('releases for hijacked replies, and for requests without a socket', async () => {
    const limiter = createLimiter(held)
    const app = fastify()
    closers.push(() => app.close())
    await app.register(forFastify({ limiter, key: () => 'alice' }))
    app.get('/', (_request, reply) => {
      reply.hijack()
      reply.raw.end('hello')
    })
    expect((await app.inject('/')).body).toBe('hello')
    await expect.poll(() => limiter.stats().held).toBe(0)
    await app.listen({ port: 0, host: '127.0.0.1' })
    const { port } = app.server.address() as AddressInfo
    expect(await (await fetch(`http://127.0.0.1:${port}`)).text()).toBe('hello')
    await expect.poll(() => limiter.stats().held).toBe(0)
  })
})
