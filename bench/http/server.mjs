// @ts-check
// A hello-world server of a framework: node server.mjs FRAMEWORK CONTESTANT LIMIT. Prints its port
// and, on request, its CPU time. Loads only what it needs.

const [framework, contestant, limitText] = process.argv.slice(2)
const limit = Number(limitText)
const HOUR_MS = 3_600_000

/** @typedef {import('node:net').AddressInfo} AddressInfo */

/**
 * Sluice's default header fields. Sending them without a decision shows the cost of headers alone.
 */
const fields = Object.entries({
  'x-ratelimit-limit': '10000000',
  'x-ratelimit-remaining': '9999999',
  'x-ratelimit-reset': '1800000000',
  ratelimit: '"token-bucket";r=9999999;t=1',
  'ratelimit-policy': '"token-bucket";q=10000000;w=3600',
})

/** @type {Record<string, () => Promise<number>>} */
const frameworks = {
  async express() {
    const { default: express } = await import('express')
    const app = express()
    if (contestant === 'empty') app.use((_request, _response, next) => next())
    if (contestant === 'fields') {
      app.use((_request, response, next) => {
        for (const [name, value] of fields) response.setHeader(name, value)
        next()
      })
    }
    if (contestant === 'sluice') {
      const { rateLimit } = await import('sluice/express')
      app.use(rateLimit({ rules: await rules() }))
    }
    if (contestant === 'usual') {
      const { rateLimit } = await import('express-rate-limit')
      app.use(rateLimit({ windowMs: HOUR_MS, limit }))
    }
    app.get('/', (_request, response) => void response.json({ hello: 'world' }))
    const server = app.listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    return /** @type {AddressInfo} */ (server.address()).port
  },

  async fastify() {
    const { default: fastify } = await import('fastify')
    const app = fastify()
    if (contestant === 'empty') app.addHook('onRequest', (_request, _reply, next) => next())
    if (contestant === 'fields') {
      app.addHook('onRequest', (_request, reply, next) => {
        for (const [name, value] of fields) reply.header(name, value)
        next()
      })
    }
    if (contestant === 'sluice') {
      const { rateLimit } = await import('sluice/fastify')
      await app.register(rateLimit({ rules: await rules() }))
    }
    if (contestant === 'usual') {
      const { default: rateLimit } = await import('@fastify/rate-limit')
      await app.register(rateLimit, { timeWindow: HOUR_MS, max: limit })
    }
    app.get('/', (_request, reply) => void reply.send({ hello: 'world' }))
    await app.listen({ port: 0, host: '127.0.0.1' })
    return /** @type {AddressInfo} */ (app.server.address()).port
  },

  async hono() {
    const { Hono } = await import('hono')
    const { serve } = await import('@hono/node-server')
    const app = new Hono()
    if (contestant === 'empty') app.use((_context, next) => next())
    if (contestant === 'fields') {
      app.use((context, next) => {
        for (const [name, value] of fields) context.header(name, value)
        return next()
      })
    }
    if (contestant === 'sluice') {
      const { rateLimit } = await import('sluice/hono')
      app.use(rateLimit({ rules: await rules() }))
    }
    if (contestant === 'usual') {
      const { rateLimiter } = await import('hono-rate-limiter')
      // It finds no client address by itself.
      const keyGenerator = (/** @type {any} */ c) => c.env.incoming.socket.remoteAddress
      app.use(/** @type {any} */ (rateLimiter({ windowMs: HOUR_MS, limit, keyGenerator })))
    }
    app.get('/', (context) => context.json({ hello: 'world' }))
    return new Promise((resolve) =>
      serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => resolve(port)),
    )
  },
}

async function rules() {
  const { tokenBucket } = await import('sluice')
  return tokenBucket({ limit, per: '1h' })
}

const port = await frameworks[framework]()
process.send?.({ port })
process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send?.({ cpuUs: user + system })
})
process.on('disconnect', () => process.exit())
