// @ts-check
// node servers.mjs NAME [UPSTREAM]: one of the servers in the gateway benchmark. Prints its port.
import fastify from 'fastify'

const [name, upstream] = process.argv.slice(2)
const app = fastify()

/** @type {Record<string, () => Promise<void>>} */
const servers = {
  /** The upstream of the proxies. */
  async upstream() {
    app.get('/', (_request, reply) => void reply.send({ hello: 'world' }))
  },

  /** The same proxy without limits. */
  async proxy() {
    const { default: replyFrom } = await import('@fastify/reply-from')
    app.removeAllContentTypeParsers()
    app.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
    await app.register(replyFrom, { undici: { connections: 256, pipelining: 1 } })
    app.all('/*', (request, reply) => reply.from(`${upstream}${request.raw.url}`))
  },

  /** A route that echoes its body. */
  async echo() {
    app.post('/v1/check', (request, reply) => void reply.send(request.body))
  },
}

await servers[name]()
console.log(await app.listen({ port: 0, host: '127.0.0.1' }))
