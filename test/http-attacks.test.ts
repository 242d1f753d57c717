import 'reflect-metadata'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ArgumentsHost, Catch, Controller, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import { createLimiter, type Limiter, tokenBucket } from 'sluice'
import { rateLimit as forExpress } from 'sluice/express'
import { rateLimit as forFastify } from 'sluice/fastify'
import { rateLimit as forFetch } from 'sluice/fetch'
import { rateLimit as forKoa } from 'sluice/koa'
import { rateLimit as forNest } from 'sluice/nest'
import { clientKey, rateLimit as forNode } from 'sluice/node'
import { afterEach, describe, expect, it, vi } from 'vitest'

const five = tokenBucket({ limit: 5, per: '1h' })
const one = tokenBucket({ limit: 1, per: '1h' })

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

async function listen(listener: RequestListener): Promise<number> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  closers.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** A server of each framework whose handler is slow and then fails. */
interface Slow {
  readonly limiter: Limiter
  /** Calls that reached the handler. */
  readonly ran: () => void
  /** Returns the key at once, or after the connection is closed. */
  keyOf(socket: Socket): string | Promise<string>
}

type Status = { readonly statusCode: number }
const failures = (_request: unknown, { statusCode }: Status) => (statusCode < 400 ? 0 : 1)
const HANDLER_MS = 30

const slow: Record<string, (what: Slow) => Promise<number>> = {
  async express({ limiter, ran, keyOf }) {
    const app = express()
    app.use(forExpress({ limiter, key: ({ socket }) => keyOf(socket), finalCost: failures }))
    app.use(async (_request, response) => {
      ran()
      await sleep(HANDLER_MS)
      response.status(401).end()
    })
    return listen(app)
  },
  async node({ limiter, ran, keyOf }) {
    const limit = forNode({ limiter, key: ({ socket }) => keyOf(socket), finalCost: failures })
    return listen((request, response) =>
      limit(request, response, async () => {
        ran()
        await sleep(HANDLER_MS)
        response.statusCode = 401
        response.end()
      }),
    )
  },
  async fastify({ limiter, ran, keyOf }) {
    const app = fastify()
    await app.register(
      forFastify({ limiter, key: ({ socket }) => keyOf(socket), finalCost: failures }),
    )
    app.get('/', async (_request, reply) => {
      ran()
      await sleep(HANDLER_MS)
      return reply.code(401).send()
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    closers.push(() => app.close())
    return (app.server.address() as AddressInfo).port
  },
  async koa({ limiter, ran, keyOf }) {
    const app = new Koa()
    app.silent = true
    app.use(
      forKoa({
        limiter,
        key: ({ req }) => keyOf(req.socket),
        finalCost: (_request, { status }) => (status < 400 ? 0 : 1),
      }),
    )
    app.use(async (context) => {
      ran()
      context.status = 200
      await sleep(HANDLER_MS)
      context.status = 401
    })
    return listen(app.callback())
  },
}

/** Sends a request, and hangs up once it is received, while the handler runs. */
async function hangUp(port: number, isHeard: () => boolean): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await expect.poll(isHeard, { interval: 2 }).toBe(true)
  socket.resetAndDestroy()
}

describe.each(Object.keys(slow))('a client that hangs up on %s', (name) => {
  it.each([false, true])('gets nothing back (decided later: %s)', async (later) => {
    const limiter = createLimiter(five)
    const ran = vi.fn()
    const keyOf = vi.fn((socket: Socket) =>
      later
        ? new Promise<string>((resolve) => socket.once('close', () => resolve('alice')))
        : 'alice',
    )
    const port = await slow[name]({ limiter, keyOf, ran })
    for (let i = 1; i <= 9; i += 1) await hangUp(port, () => keyOf.mock.calls.length === i)
    await expect.poll(() => limiter.peek('alice').remaining).toBe(0)
    await sleep(HANDLER_MS + 40)
    // The handler must not run for a client that left before the decision.
    expect(ran).toHaveBeenCalledTimes(later ? 0 : 5)
    expect(limiter.peek('alice').remaining).toBe(0)
  })
})

describe('clientKey', () => {
  it('returns the key that rateLimit uses for an address', async () => {
    const keys: string[] = []
    const trusting = clientKey({ trustProxy: 1 })
    const port = await listen((request, response) => {
      keys.push(clientKey()(request), trusting(request))
      response.end()
    })
    await fetch(`http://127.0.0.1:${port}`, { headers: { 'x-forwarded-for': '2001:db8::1' } })
    expect(keys).toEqual(['127.0.0.1', '2001:db8:0:0:0:0:0:0/64'])
  })
})

describe('plain http', () => {
  const quiet = { onError: () => {} }

  it('does not continue with a request that it cannot decide', async () => {
    const onError = vi.fn()
    // A bug of the application: any text that a client sends is a key.
    const limit = forNode({ rules: one, key: () => 42 as never, onError })
    const next = vi.fn()
    const port = await listen((request, response) => limit(request, response, next))
    const { status } = await fetch(`http://127.0.0.1:${port}`)
    expect(status).toBe(500)
    expect(next).not.toHaveBeenCalled()
    expect(onError.mock.calls[0][0]).toMatchObject({ code: 'SLUICE_KEY' })
  })

  it.each<[string, object]>([
    ['a field with a line break', { fields: [['X-A', 'a\r\nb']] }],
    ['an invalid status', { status: 99 }],
    ['an invalid body', { body: new Map() }],
  ])('survives %s from onLimited', async (_name, change) => {
    const limit = forNode({ rules: one, onLimited: () => change, ...quiet })
    const port = await listen((request, response) =>
      limit(request, response, () => response.end('hello')),
    )
    const statuses: number[] = []
    for (let i = 0; i < 3; i += 1) statuses.push((await fetch(`http://127.0.0.1:${port}`)).status)
    expect(statuses).toEqual([200, 500, 500])
  })
})

describe('a denied address', () => {
  it('is still denied after its connection is closed', async () => {
    const skip = () => sleep(20, false)
    const [heard, ran] = [vi.fn(), vi.fn()]
    const limit = forNode({ rules: one, skip, denyList: ['127.0.0.1'] })
    const port = await listen((request, response) => {
      heard()
      limit(request, response, ran)
    })
    await hangUp(port, () => heard.mock.calls.length > 0)
    await sleep(40)
    expect(ran).not.toHaveBeenCalled()
  })
})

describe('Nest', () => {
  it('lets exception filters write refusals, also asynchronous ones', async () => {
    class Hello {
      hello() {
        return 'hello'
      }
    }
    class App {}
    class All {
      async catch(error: { getStatus(): number; getResponse(): object }, host: ArgumentsHost) {
        await sleep(5)
        const response = host.switchToHttp().getResponse()
        response.status(error.getStatus()).json({ mine: error.getResponse() })
      }
    }
    Catch()(All)
    Controller()(Hello)
    Get()(Hello.prototype, 'hello', Object.getOwnPropertyDescriptor(Hello.prototype, 'hello')!)
    Module({ controllers: [Hello] })(App)
    const app = await NestFactory.create(App, { logger: false })
    app.useGlobalGuards(forNest({ rules: one }))
    app.useGlobalFilters(new All())
    await app.listen(0, '127.0.0.1')
    closers.push(() => app.close())
    const url = await app.getUrl()
    await fetch(url)
    const refused = await fetch(url)
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toBe('3600')
    expect(await refused.json()).toMatchObject({ mine: { title: 'Quota Exceeded' } })
  })
})

describe('Fastify', () => {
  it.each([true, null, { cots: 3 }])(
    'refuses to start with the config %j of a route',
    async (own) => {
      const app = fastify()
      await app.register(forFastify({ rules: one }))
      expect(() => app.get('/', { config: { rateLimit: own as never } }, () => '')).toThrow(
        /rateLimit/,
      )
    },
  )

  it('extends Access-Control-Expose-Headers instead of replacing it', async () => {
    const app = fastify()
    app.addHook('onRequest', async (_request, reply) => {
      reply.header('Access-Control-Expose-Headers', 'X-Total')
    })
    await app.register(forFastify({ rules: one }))
    app.get('/', () => 'hello')
    const { headers } = await app.inject({ url: '/', headers: { origin: 'https://a.example' } })
    expect(headers['access-control-expose-headers']).toMatch(/^X-Total, .*RateLimit/)
  })
})

describe('Koa', () => {
  it('sends rate-limit headers also when a handler throws', async () => {
    const app = new Koa()
    app.silent = true
    app.use(forKoa({ rules: five }))
    app.use((context) => context.throw(400, 'no'))
    const { status, headers } = await fetch(`http://127.0.0.1:${await listen(app.callback())}`)
    expect([status, headers.get('x-ratelimit-remaining')]).toEqual([400, '4'])
  })
})

describe('fetch handlers', () => {
  it('may return no response, as for an upgraded connection', async () => {
    const handler = forFetch({ rules: five, key: () => 'alice' })(() => undefined as never)
    expect(await handler(new Request('http://a.example'))).toBeUndefined()
  })
})
