import 'reflect-metadata'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { serve } from '@hono/node-server'
import { Controller, Get, Module, Param, Req, Res } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import express from 'express'
// @ts-expect-error it has no types of its own
import express4 from 'express-4'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { rateLimit as forExpress } from 'sluice/express'
import { rateLimit as forFastify } from 'sluice/fastify'
import { rateLimit as forFetch, rateLimitOf as ofFetch } from 'sluice/fetch'
import { rateLimit as forHono } from 'sluice/hono'
import { rateLimit as forKoa } from 'sluice/koa'
import { rateLimit as forNest, rateLimitOf as ofNest } from 'sluice/nest'
import {
  rateLimit as forNode,
  type RateLimitOptions,
  type RequestLimit,
  rateLimitOf,
} from 'sluice/node'
import type { Running } from './servers.ts'

/** Options that do not depend on a framework's request, and a callback of handlers. */
export type PermitOptions = RateLimitOptions<unknown, unknown> & {
  /** Called when a handler runs. */
  readonly reached?: (limit: RequestLimit | undefined) => void
}

/**
 * What a handler does, by path: `text` ends the response, `never` sends nothing, `stream` only
 * starts.
 */
type Act = { readonly text: string } | 'never' | 'stream'

async function actOf(
  path: string | undefined,
  limit: RequestLimit | undefined,
  { reached }: PermitOptions,
): Promise<Act> {
  reached?.(limit)
  if (path === '/throw') throw new Error('of the handler')
  if (path === '/hang') return 'never'
  if (path === '/stream') return 'stream'
  if (path === '/late') await sleep(20)
  if (path === '/settle') await limit?.permit?.settle(7)
  const { decision, permit } = limit ?? {}
  return { text: JSON.stringify([decision?.allowed, permit?.allowed]) }
}

const never = () => new Promise<never>(() => {})

/** Creates a stream that sends a chunk and never ends. */
const webStream = () =>
  new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode('x')) })

function nodeStream(): Readable {
  const stream = new Readable({ read() {} })
  stream.push('x')
  return stream
}

function optionsOf({ reached: _, ...options }: PermitOptions): RateLimitOptions<unknown, unknown> {
  return options as RateLimitOptions<unknown, unknown>
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

function expressServer(make: typeof express) {
  return (options: PermitOptions) => {
    const app = make()
    app.use(forExpress(optionsOf(options)))
    app.use(async (request, response, next) => {
      try {
        const act = await actOf(request.path, request.rateLimit, options)
        if (act === 'stream') response.write('x')
        else if (act !== 'never') response.send(act.text)
      } catch (error) {
        next(error)
      }
    })
    return listening(createServer(app as RequestListener))
  }
}

/** permitServers start a server with a rate limit on every route, by the name of the framework. */
export const permitServers: Record<string, (options: PermitOptions) => Promise<Running>> = {
  'express 5': expressServer(express),
  'express 4': expressServer(express4),

  async fastify(options) {
    const app = fastify()
    await app.register(forFastify(optionsOf(options)))
    app.get('*', async (request, reply) => {
      const act = await actOf(request.url, request.rateLimit, options)
      if (act === 'never') return never()
      return act === 'stream' ? reply.send(nodeStream()) : act.text
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    return {
      port: (app.server.address() as AddressInfo).port,
      close: () => {
        app.server.closeAllConnections()
        return app.close()
      },
    }
  },

  async hono(options) {
    const app = new Hono()
    app.use(forHono(optionsOf(options)))
    app.onError((_error, context) => context.text('failed', 500))
    app.get('*', async (context) => {
      const act = await actOf(context.req.path, context.get('rateLimit'), options)
      if (act === 'never') return never()
      return act === 'stream' ? context.body(webStream()) : context.text(act.text)
    })
    return served(app.fetch)
  },

  /** As on Deno, Bun or Workers, which pass only the address. */
  async 'hono elsewhere'(options) {
    const app = new Hono()
    app.use(forHono(optionsOf(options)))
    app.onError((_error, context) => context.text('failed', 500))
    app.get('*', async (context) => {
      const act = await actOf(context.req.path, context.get('rateLimit'), options)
      if (act === 'never') return never()
      return act === 'stream' ? context.body(webStream()) : context.text(act.text)
    })
    return served((request: Request) =>
      app.fetch(request, { remoteAddr: { hostname: '127.0.0.1' } }),
    )
  },

  async fetch(options) {
    const limited = forFetch<[{ incoming: { socket: { remoteAddress?: string } } }]>({
      ...optionsOf(options),
      address: (_request, { incoming }) => incoming.socket.remoteAddress,
    })
    const handler = limited(async (request) => {
      const act = await actOf(new URL(request.url).pathname, ofFetch(request), options)
      if (act === 'never') return never()
      return new Response(act === 'stream' ? webStream() : act.text)
    })
    return served(handler as never)
  },

  koa(options) {
    const app = new Koa()
    app.silent = true
    app.use(forKoa(optionsOf(options)))
    app.use(async (context) => {
      const act = await actOf(context.path, context.state.rateLimit, options)
      if (act === 'never') return never()
      context.body = act === 'stream' ? nodeStream() : act.text
    })
    return listening(createServer(app.callback()))
  },

  node(options) {
    const limit = forNode(optionsOf(options))
    return listening(
      createServer((request, response) =>
        limit(request, response, async () => {
          try {
            const act = await actOf(request.url, rateLimitOf(request), options)
            if (act === 'stream') response.write('x')
            else if (act !== 'never') response.end(act.text)
          } catch {
            response.writeHead(500).end()
          }
        }),
      ),
    )
  },

  async nest(options) {
    class Routes {
      async any(path: string, request: object, response: import('express').Response) {
        const act = await actOf(`/${path}`, ofNest(request), options)
        if (act === 'stream') response.write('x')
        else if (act !== 'never') response.send(act.text)
      }
    }
    class App {}
    Controller()(Routes)
    Get(':path')(Routes.prototype, 'any', Object.getOwnPropertyDescriptor(Routes.prototype, 'any')!)
    Param('path')(Routes.prototype, 'any', 0)
    Req()(Routes.prototype, 'any', 1)
    Res()(Routes.prototype, 'any', 2)
    Module({ controllers: [Routes] })(App)
    const app = await NestFactory.create(App, { logger: false })
    app.useGlobalGuards(forNest(optionsOf(options)))
    await app.listen(0, '127.0.0.1')
    const server: Server = app.getHttpServer()
    return {
      port: (server.address() as AddressInfo).port,
      close: () => {
        server.closeAllConnections()
        return app.close()
      },
    }
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
