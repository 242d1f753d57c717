// @ts-check
// A hello-world server of a framework: node server.mjs FRAMEWORK CONTESTANT LIMIT. Prints its port; told
// 'cpu', it says how much of the processor it has used.

import fastifyRateLimit from '@fastify/rate-limit'
import { serve } from '@hono/node-server'
import express from 'express'
import { rateLimit as expressRateLimit } from 'express-rate-limit'
import fastify from 'fastify'
import { Hono } from 'hono'
import { rateLimiter } from 'hono-rate-limiter'
import { tokenBucket } from 'sluice'
import { rateLimit as forExpress } from 'sluice/express'
import { rateLimit as forFastify } from 'sluice/fastify'
import { rateLimit as forHono } from 'sluice/hono'

const [framework, contestant, limitText] = process.argv.slice(2)
const limit = Number(limitText)
const rules = tokenBucket({ limit, per: '1h' })
const HOUR_MS = 3_600_000

/** @type {Record<string, () => Promise<number>>} */
const frameworks = {
  async express() {
    const app = express()
    if (contestant === 'empty') app.use((_request, _response, next) => next())
    if (contestant === 'sluice') app.use(forExpress({ rules }))
    if (contestant === 'usual') app.use(expressRateLimit({ windowMs: HOUR_MS, limit }))
    app.get('/', (_request, response) => void response.json({ hello: 'world' }))
    const server = app.listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    return /** @type {import('node:net').AddressInfo} */ (server.address()).port
  },

  async fastify() {
    const app = fastify()
    if (contestant === 'empty') app.addHook('onRequest', (_request, _reply, next) => next())
    if (contestant === 'sluice') await app.register(forFastify({ rules }))
    if (contestant === 'usual') {
      await app.register(fastifyRateLimit, { timeWindow: HOUR_MS, max: limit })
    }
    app.get('/', (_request, reply) => void reply.send({ hello: 'world' }))
    await app.listen({ port: 0, host: '127.0.0.1' })
    return /** @type {import('node:net').AddressInfo} */ (app.server.address()).port
  },

  async hono() {
    const app = new Hono()
    if (contestant === 'empty') app.use((_context, next) => next())
    if (contestant === 'sluice') app.use(forHono({ rules }))
    if (contestant === 'usual') {
      // It has no address of its own to go by.
      const keyGenerator = (/** @type {any} */ c) => c.env.incoming.socket.remoteAddress
      app.use(/** @type {any} */ (rateLimiter({ windowMs: HOUR_MS, limit, keyGenerator })))
    }
    app.get('/', (context) => context.json({ hello: 'world' }))
    return new Promise((resolve) =>
      serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => resolve(port)),
    )
  },
}

const port = await frameworks[framework]()
process.send?.({ port })
process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send?.({ cpuUs: user + system })
})
process.on('disconnect', () => process.exit())
