import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import fastify from 'fastify'
import { expect, it } from 'vitest'
import { createDrain } from './drain.ts'

it('waits until the deadline at most, for any protocol', async () => {
  const app = fastify({ forceCloseConnections: 'idle' })
  app.get('/', () => new Promise(() => {}))
  // A connection that neither side closes.
  app.server.on('upgrade', (_request, socket) => {
    socket.write('open')
  })
  const drain = createDrain(app)
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const clients = ['Upgrade', 'keep-alive'].map((connection) => {
    const client = connect(port, '127.0.0.1')
      .on('error', () => {})
      .resume()
    client.write(`GET / HTTP/1.1\r\nHost: x\r\nConnection: ${connection}\r\nUpgrade: x\r\n\r\n`)
    return client
  })
  await once(clients[0], 'data')
  await drain(performance.now() + 100)
  await Promise.all(clients.map((client) => client.destroyed || once(client, 'close')))
  expect(app.server.listening).toBe(false)
})
