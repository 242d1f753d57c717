import 'reflect-metadata'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Controller, Get, type INestApplication, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import type { NestExpressApplication } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import express from 'express'
// @ts-expect-error it has no types of its own
import express4 from 'express-4'
import fastify from 'fastify'
import Koa from 'koa'
import { rateLimit as forExpress } from 'sluice/express'
import { rateLimit as forFastify } from 'sluice/fastify'
import { rateLimit as forKoa } from 'sluice/koa'
import { rateLimit as forNest } from 'sluice/nest'
import type { CommonOptions, Running } from './servers.ts'

/** Starts a server whose framework trusts proxies: these addresses, or all for true. */
type Start = (trusted: string | boolean, options: CommonOptions) => Promise<Running>

async function listening(server: Server): Promise<Running> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { port, close: () => closed(server) }
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.closeAllConnections()
    server.close(() => resolve())
  })
}

const onExpress =
  (make: typeof express): Start =>
  (trusted, options) => {
    const app = make()
    app.use(forExpress(options as never))
    app.set('trust proxy', trusted)
    app.get('/', (_request, response) => void response.send('hello'))
    return listening(createServer(app as RequestListener))
  }

class Hello {
  hello() {
    return 'hello'
  }
}
class App {}
Controller()(Hello)
Get()(Hello.prototype, 'hello', Object.getOwnPropertyDescriptor(Hello.prototype, 'hello')!)
Module({ controllers: [Hello] })(App)

async function nest(app: INestApplication, options: CommonOptions): Promise<Running> {
  app.useGlobalGuards(forNest(options as never))
  await app.listen(0, '127.0.0.1')
  return { port: app.getHttpServer().address().port, close: () => app.close() }
}

/** proxiedServers are frameworks with their own support for proxies. */
export const proxiedServers: Record<string, Start> = {
  'express 5': onExpress(express),
  'express 4': onExpress(express4),

  async fastify(trusted, options) {
    const app = fastify({ trustProxy: trusted })
    await app.register(forFastify(options as never))
    app.get('/', () => 'hello')
    await app.listen({ port: 0, host: '127.0.0.1' })
    return { port: (app.server.address() as AddressInfo).port, close: () => app.close() }
  },

  // Koa trusts all proxies or none; maxIpsCount limits the addresses that it reads from the end.
  koa(trusted, options) {
    const app = new Koa({ proxy: trusted !== false, maxIpsCount: trusted === true ? 0 : 1 })
    app.use(forKoa(options as never))
    app.use((context) => {
      context.body = 'hello'
    })
    return listening(createServer(app.callback()))
  },

  async 'nest on express'(trusted, options) {
    const app = await NestFactory.create<NestExpressApplication>(App, { logger: false })
    app.set('trust proxy', trusted)
    return nest(app, options)
  },

  async 'nest on fastify'(trusted, options) {
    const adapter = new FastifyAdapter({ trustProxy: trusted })
    return nest(await NestFactory.create(App, adapter as never, { logger: false }), options)
  },
}
