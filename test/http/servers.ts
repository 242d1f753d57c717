import 'reflect-metadata'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { Controller, type ExecutionContext, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import express from 'express'
// @ts-expect-error it has no types of its own
import express4 from 'express-4'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { rateLimit as forExpress } from 'sluice/express'
import { rateLimit as forFastify } from 'sluice/fastify'
import { rateLimit as forFetch } from 'sluice/fetch'
import { rateLimit as forHono } from 'sluice/hono'
import { rateLimit as forKoa } from 'sluice/koa'
import { rateLimit as forNest } from 'sluice/nest'
import {
  rateLimit as forNode,
  type Limited,
  type RateLimitOptions,
  type RefusalChange,
} from 'sluice/node'

/** Options that do not depend on a framework's request. */
export type CommonOptions = Omit<
  RateLimitOptions<never, never>,
  | 'key'
  | 'tier'
  | 'cost'
  | 'finalCost'
  | 'skip'
  | 'partitionKey'
  | 'onLimited'
  | 'onDecision'
  | 'onError'
> & {
  readonly onError?: (error: unknown) => void
  /** The header that a request's key, cost and skip are read from. */
  readonly byHeaders?: boolean
  /** The header that the partition key is read from. */
  readonly partitionHeader?: string
  /** The final cost of each request. */
  readonly finally?: number
  /** The same for all frameworks, so it cannot use the request. */
  readonly onLimited?: (limited: Limited<unknown>) => RefusalChange | Promise<RefusalChange>
  /** Called by the handler. */
  readonly ran?: () => void
}

/** Running is a server of a framework with a route that says hello. */
export interface Running {
  readonly port: number
  close(): Promise<void>
}

type HeaderOf = (name: string) => string | undefined

/** Builds the options of a framework whose request headers `get` reads. */
function optionsFor<Request>(
  { byHeaders, partitionHeader, finally: final, ran: _ran, ...options }: CommonOptions,
  get: (request: Request) => HeaderOf,
): RateLimitOptions<Request, unknown> {
  const read = byHeaders
    ? {
        key: (request: Request) => get(request)('x-key'),
        cost: (request: Request) => Number(get(request)('x-cost') ?? 1),
        skip: (request: Request) => get(request)('x-skip') !== undefined,
      }
    : {}
  const partition = partitionHeader
    ? { partitionKey: (request: Request) => get(request)(partitionHeader) }
    : {}
  return {
    ...options,
    ...read,
    ...partition,
    ...(final === undefined ? {} : { finalCost: () => final }),
  } as RateLimitOptions<Request, unknown>
}

function hello({ ran }: CommonOptions): string {
  ran?.()
  return 'hello'
}

async function listening(server: Server): Promise<Running> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}

const nodeGet = (request: { headers: Record<string, unknown> }) => (name: string) =>
  request.headers[name] as string | undefined

function expressServer(make: typeof express) {
  return (options: CommonOptions) => {
    const app = make()
    app.use(forExpress(optionsFor(options, nodeGet)))
    app.get('/', (_request, response) => void response.send(hello(options)))
    return listening(createServer(app as RequestListener))
  }
}

/** servers start a server with a rate limit on every route, by the name of the framework. */
export const servers: Record<string, (options: CommonOptions) => Promise<Running>> = {
  'express 5': expressServer(express),
  'express 4': expressServer(express4),

  async fastify(options) {
    const app = fastify()
    await app.register(forFastify(optionsFor(options, nodeGet)))
    app.get('/', () => hello(options))
    await app.listen({ port: 0, host: '127.0.0.1' })
    return { port: (app.server.address() as AddressInfo).port, close: () => app.close() }
  },

  async hono(options) {
    const app = new Hono()
    app.use(forHono(optionsFor(options, (context) => (name) => context.req.header(name))))
    app.get('/', (context) => context.text(hello(options)))
    return served(app.fetch)
  },

  async fetch(options) {
    const limited = forFetch<[{ incoming: { socket: { remoteAddress?: string } } }]>({
      ...optionsFor<Request>(
        options,
        (request) => (name) => request.headers.get(name) ?? undefined,
      ),
      address: (_request, { incoming }) => incoming.socket.remoteAddress,
    })
    return served(limited(() => new Response(hello(options))) as never)
  },

  koa(options) {
    const app = new Koa()
    app.use(forKoa(optionsFor(options, (context) => (name) => context.get(name) || undefined)))
    app.use((context) => {
      context.body = hello(options)
    })
    return listening(createServer(app.callback()))
  },

  node(options) {
    const limit = forNode(optionsFor(options, nodeGet))
    return listening(
      createServer((request, response) =>
        limit(request, response, () => response.end(hello(options))),
      ),
    )
  },

  async nest(options) {
    class Hello {
      hello() {
        return hello(options)
      }
    }
    class App {}
    Controller()(Hello)
    Get()(Hello.prototype, 'hello', Object.getOwnPropertyDescriptor(Hello.prototype, 'hello')!)
    Module({ controllers: [Hello] })(App)
    const app = await NestFactory.create(App, { logger: false })
    const requestOf = (context: ExecutionContext) => context.switchToHttp().getRequest()
    app.useGlobalGuards(forNest(optionsFor(options, (context) => nodeGet(requestOf(context)))))
    await app.listen(0, '127.0.0.1')
    return { port: app.getHttpServer().address().port, close: () => app.close() }
  },
}

function served(fetch: Parameters<typeof serve>[0]['fetch']): Promise<Running> {
  return new Promise((resolve) => {
    const server = serve({ fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) =>
      resolve({
        port,
        close: () =>
          new Promise((closed) => {
            ;(server as Server).closeAllConnections()
            server.close(() => closed())
          }),
      }),
    )
  })
}
