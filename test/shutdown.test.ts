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

/** Serves a gateway without limits, whose upstream never answers; `drain` stops it after so long. */
async function serve() {
  const upstream = await serveUpstream(() => {})
  const settings = settingsOf({}, undefined, upstream.url)
  const log: string[] = []
  const gateway = await createGateway({
    settings,
    current: () => ({
      isProxy: () => false,
      find: () => ({ settings: settings.routes[0], limit: undefined }),
    }),
    logger: pino({}, { write: (line: string) => void log.push(line) }),
    onProxied() {},
  })
  const drain = createDrain(gateway)
  const url = await gateway.listen({ host: '127.0.0.1', port: 0 })
  const ask = (text: string) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {})
    clients.push(socket.resume())
    socket.write(text)
    return socket
  }
  return { upstream, log, ask, drain: (ms: number) => drain(performance.now() + ms) }
}

describe('a gateway that waits no longer', () => {
  it('does not blame the upstream for requests that it cuts', async () => {
    const { upstream, log, ask, drain } = await serve()
    const asked = [
      ask('GET / HTTP/1.1\r\nHost: x\r\n\r\n'),
      ask('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na'),
    ]
    await expect.poll(() => upstream.asked.length).toBe(2)
    await drain(50)
    await expect.poll(() => asked.every(({ destroyed }) => destroyed)).toBe(true)
    await expect.poll(() => upstream.asked.every(({ socket }) => socket.destroyed)).toBe(true)
    expect(log).toEqual([])
  })
})
