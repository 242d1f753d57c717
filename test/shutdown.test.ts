import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { connect, type Socket } from 'node:net'
import { pino } from 'pino'
import { afterEach, describe, expect, it } from 'vitest'
import { createDrain } from '../packages/server/src/app/drain.ts'
import { createGateway } from '../packages/server/src/gateway/gateway.ts'
import { closeAll, serveUpstream, settingsOf } from './server/service.ts'

const clients: Socket[] = []
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy()
  await closeAll()
})

/** Serves a gateway without limits. `drain` stops it, and waits for a given time. */
async function serve(listener: RequestListener) {
  const upstream = await serveUpstream(listener)
  const settings = settingsOf({}, undefined, upstream.url)
  const log: string[] = []
  const gateway = await createGateway({
    settings,
    current: () => ({
      isProxy: () => false,
      find: () => ({ settings: settings.routes[0], identity: [], limit: undefined }),
    }),
    logger: pino({}, { write: (line: string) => void log.push(line) }),
    onProxied() {},
  })
  const drain = createDrain(gateway)
  const url = await gateway.listen({ host: '127.0.0.1', port: 0 })
  const ask = (text: string) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {})
    clients.push(socket)
    const client = { socket, said: '' }
    socket.on('data', (data) => {
      client.said += data
    })
    socket.write(text)
    return client
  }
  return { upstream, log, ask, drain: (ms: number) => drain(performance.now() + ms) }
}

/** Tells whether no server listens on the port. */
function isDeaf(port = 0): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  return once(socket, 'connect').then(
    () => !socket.destroy(),
    () => true,
  )
}

describe('a gateway that drains', () => {
  it('refuses further requests on a connection, and hangs up', async () => {
    const { upstream, ask, drain } = await serve((request, response) => {
      request.resume().once('end', () => response.end('done'))
    })
    const begun = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na'
    const asked = [ask(begun), ask(begun)]
    await expect.poll(() => upstream.asked.length).toBe(2)
    const drained = drain(30_000)
    await expect.poll(() => isDeaf(asked[0].socket.remotePort)).toBe(true)
    asked[0].socket.write('bGET /next HTTP/1.1\r\nHost: x\r\n\r\n')
    asked[1].socket.write('bPOST /next HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc')
    await drained
    for (const client of asked) {
      await expect.poll(() => client.socket.destroyed).toBe(true)
      const [, first, next] = client.said.split('HTTP/1.1 ')
      expect(first).toMatch(/^200 /)
      expect(next).toMatch(/^503 .*^content-type: application\/problem\+json;/ims)
      expect(next).toMatch(/^connection: close\r$/im)
      expect(JSON.parse(next.split('\r\n\r\n')[1])).toEqual({
        type: 'about:blank',
        status: 503,
        title: 'Service Unavailable',
        detail: 'The gateway is shutting down.',
      })
    }
    expect(upstream.asked).toHaveLength(2)
  })
})

describe('a gateway whose drain has timed out', () => {
  it('does not count the requests that it cuts as upstream failures', async () => {
    const { upstream, log, ask, drain } = await serve(() => {})
    const asked = [
      ask('GET / HTTP/1.1\r\nHost: x\r\n\r\n'),
      ask('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na'),
    ]
    await expect.poll(() => upstream.asked.length).toBe(2)
    await drain(50)
    await expect.poll(() => asked.every(({ socket }) => socket.destroyed)).toBe(true)
    await expect.poll(() => upstream.asked.every(({ socket }) => socket.destroyed)).toBe(true)
    expect(log).toEqual([])
  })
})
