import type { IncomingMessage, RequestListener } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { as, closeAll, serveUpstream, settingsOf, start } from './server/service.ts'

const clients: Socket[] = []
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy()
  await closeAll()
})

const OFFER = 'GET /chat HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n'
const ACCEPTED =
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-RateLimit-Limit: 999\r\n\r\n'

/** Serves a gateway. `accept` is how its upstream handles WebSockets. */
async function serve(
  accept: (socket: Duplex, request: IncomingMessage, head: Buffer) => void,
  { timeoutMs = 2_000, listener }: { timeoutMs?: number; listener?: RequestListener } = {},
) {
  const upstream = await serveUpstream(listener)
  const reached: Duplex[] = []
  upstream.server.on('upgrade', (request, socket, head) => {
    reached.push(socket.on('error', () => {}).on('end', () => socket.end()))
    accept(socket, request, head)
  })
  const route = { upstream: { name: 'main', url: upstream.url, timeoutMs } }
  const service = await start(settingsOf({}, [route]))
  const open = (lines = '', after = '') => talk(service.gatewayUrl, `${OFFER}${lines}\r\n${after}`)
  return { ...service, upstream, reached, open }
}

/** Sends text and stays connected. `said` is what has arrived so far. */
function talk(url: string, text: string) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  clients.push(socket)
  const client = { socket, said: '' }
  socket.on('error', () => {})
  socket.setEncoding('latin1').on('data', (data) => {
    client.said += data
  })
  socket.write(text)
  return client
}

const accept = (socket: Duplex) => void socket.write(ACCEPTED)

describe('a gateway that stops', () => {
  it('cuts WebSockets that are open, or still being opened', async () => {
    const { close, reached, open } = await serve(async (socket, { headers }) => {
      if (headers['x-slow']) await sleep(200)
      accept(socket)
    })
    const [quick, slow] = [open(), open('X-Slow: 1\r\n')]
    await expect.poll(() => quick.said).toMatch(/^HTTP\/1\.1 101 /)
    await expect.poll(() => reached.length).toBe(2)
    await close()
    await expect.poll(() => quick.socket.destroyed && slow.socket.destroyed).toBe(true)
    expect(slow.said).toBe('')
  })

  it('opens none on a kept connection', async () => {
    const { close, gatewayUrl, reached, upstream } = await serve(accept)
    const begun = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na'
    const client = talk(gatewayUrl, begun)
    await expect.poll(() => upstream.asked.length).toBe(1)
    const closed = close()
    const isDeaf = () => fetch(gatewayUrl, { method: 'PUT' }).then(String, () => 'deaf')
    await expect.poll(isDeaf).toBe('deaf')
    client.socket.write(`b${OFFER}\r\n`)
    await closed
    await expect.poll(() => client.socket.destroyed).toBe(true)
    expect(client.said).toMatch(/^HTTP\/1\.1 200 /)
    expect(reached).toHaveLength(0)
  })
})

describe('a WebSocket', () => {
  it('releases the upstream if the client leaves before it is accepted', async () => {
    const wait = (socket: Duplex) => void socket.resume()
    const { reached, open, log } = await serve(wait, { timeoutMs: 60_000 })
    for (const leave of ['end', 'destroy', 'resetAndDestroy'] as const) {
      const { socket } = open()
      await expect.poll(() => reached.length).toBe(1)
      socket[leave]()
      await expect.poll(() => reached[0].destroyed, { timeout: 5_000 }).toBe(true)
      await expect.poll(() => socket.destroyed).toBe(true)
      reached.pop()
    }
    expect(log.filter(({ level }) => level !== 30)).toEqual([])
  })

  it('still receives data after the client has half-closed', async () => {
    const { open } = await serve((socket) => {
      socket.prependListener('end', () => socket.write('bye')).resume()
      accept(socket)
    })
    const client = open()
    await expect.poll(() => client.said).toMatch(/^HTTP\/1\.1 101 /)
    client.socket.end()
    await expect.poll(() => client.said).toMatch(/bye$/)
    await expect.poll(() => client.socket.destroyed).toBe(true)
  })

  it('is answered with 504 if the upstream takes too long, and logged', async () => {
    const { open, log } = await serve(() => {}, { timeoutMs: 50 })
    const client = open()
    await expect.poll(() => client.said).toMatch(/^HTTP\/1\.1 504 .*application\/problem\+json/s)
    const told = { upstream: 'main', error: 'ETIMEDOUT', msg: 'upstream failed' }
    expect(log).toContainEqual(expect.objectContaining(told))
  })

  it('may be silent for longer than an answer may take', async () => {
    const { open, reached } = await serve(accept, { timeoutMs: 50 })
    const client = open()
    await expect.poll(() => client.said).toMatch(/^HTTP\/1\.1 101 /)
    await sleep(300)
    reached[0].write('still here')
    await expect.poll(() => client.said).toMatch(/still here$/)
  })

  it('is cut if the upstream disconnects during its refusal', async () => {
    const { open } = await serve(async (socket) => {
      socket.write('HTTP/1.1 403 Forbidden\r\nContent-Length: 100\r\n\r\nhalf')
      await sleep(50)
      socket.destroy()
    })
    const client = open()
    await expect.poll(() => client.socket.destroyed, { timeout: 5_000 }).toBe(true)
    expect(client.said).toMatch(/^HTTP\/1\.1 403 .*half$/s)
  })

  it('is closed after a refusal, even if the client does not hang up', async () => {
    const { open } = await serve((socket) => {
      socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno')
    })
    const client = open()
    client.socket.allowHalfOpen = true
    await expect.poll(() => client.said).toMatch(/^HTTP\/1\.1 403 .*no$/s)
    const write = () => client.socket.write('x')
    await expect.poll(() => client.socket.destroyed || !write() || 'open').toBe(true)
  })

  it('gets the gateway’s rate-limit headers in place of the upstream’s', async () => {
    const { open } = await serve((socket, { headers }) => {
      if (!headers['x-bad']) return accept(socket)
      socket.end('HTTP/1.1 403 Forbidden\r\nRateLimit: "theirs";r=999;t=1\r\n\r\n')
    })
    const [opened, refused] = [open(), open('X-Bad: 1\r\n')]
    await expect.poll(() => opened.said).toMatch(/^HTTP\/1\.1 101 .*^x-ratelimit-limit: 5\r$/ms)
    await expect.poll(() => refused.said).toMatch(/^HTTP\/1\.1 403 .*^ratelimit: "token-bucket"/ims)
    expect(opened.said + refused.said).not.toContain('999')
  })

  it('is not opened by a request with a body, or with a method other than GET', async () => {
    const { gatewayUrl, open, reached, upstream } = await serve(accept)
    for (const [fields, body] of [
      ['Content-Length: 5\r\n', 'hello'],
      ['Transfer-Encoding: chunked\r\n', '5\r\nhello\r\n0\r\n\r\n'],
    ]) {
      const client = open(fields, body)
      await expect.poll(() => client.said).toMatch(/^HTTP\/1\.1 400 .*Send it with POST/s)
      await expect.poll(() => client.socket.destroyed).toBe(true)
    }
    const offer = `${OFFER.replace('GET', 'POST')}Content-Length: 5\r\n\r\nhello`
    const posted = talk(gatewayUrl, offer)
    await expect.poll(() => posted.said).toMatch(/^HTTP\/1\.1 200 .*hello/s)
    const old = talk(gatewayUrl, `${OFFER.replace('HTTP/1.1', 'HTTP/1.0')}\r\n`)
    await expect.poll(() => old.said).toMatch(/^HTTP\/1\.1 200 /)
    expect([reached.length, upstream.asked.length]).toEqual([0, 2])
  })

  it('gets an answer byte for byte, and nothing of one with an invalid status', async () => {
    const { gatewayUrl, open } = await serve((socket, { headers }) => {
      if (headers['x-bad']) socket.end('HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n')
      else socket.write(ACCEPTED.replace('\r\n\r\n', '\r\nX-Name: caf\xe9\r\n\r\n'), 'latin1')
    })
    const [opened, refused] = [open(), open('X-Bad: 1\r\n')]
    await expect.poll(() => opened.said).toMatch(/^X-Name: caf\xe9\r$/m)
    await expect.poll(() => refused.said).toMatch(/^HTTP\/1\.1 502 /)
    expect((await fetch(gatewayUrl)).status).toBe(200)
  })

  it('waits until the requests before it are answered', async () => {
    const { gatewayUrl } = await serve(accept)
    const first = 'POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na'
    const offer = 'GET /b HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: '
    for (const [to, expected] of [
      ['websocket', /^HTTP\/1\.1 200 .*HTTP\/1\.1 101 /s],
      ['h2c', /^HTTP\/1\.1 200 .*HTTP\/1\.1 200 /s],
    ] as const) {
      const client = talk(gatewayUrl, `${first}${offer}${to}\r\n\r\n`)
      await expect.poll(() => client.said).toMatch(expected)
    }
    // A client that leaves meanwhile is ignored.
    const { socket } = talk(gatewayUrl, `${first}${offer}websocket\r\n\r\n`)
    socket.once('connect', () => socket.resetAndDestroy())
    await sleep(50)
    expect((await fetch(gatewayUrl, as('a'))).status).toBe(200)
  })

  it('is not requested if the client leaves while it waits', async () => {
    const listener: RequestListener = async (_request, response) => {
      await sleep(200)
      response.end('late')
    }
    const { gatewayUrl, reached, upstream } = await serve(accept, { listener })
    const first = 'POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na'
    const client = talk(gatewayUrl, `${first}${OFFER}\r\n`)
    await expect.poll(() => upstream.asked.length).toBe(1)
    client.socket.end()
    await expect.poll(() => client.socket.destroyed).toBe(true)
    expect(client.said).toMatch(/^HTTP\/1\.1 200 .*late$/s)
    expect(reached).toHaveLength(0)
  })
})

describe('an upgrade to another protocol than WebSocket', () => {
  const h2c = (version: string, connection: string) =>
    `GET /a HTTP/${version}\r\nHost: x\r\nX-Hop: 1\r\nX-End: 1\r\nHTTP2-Settings: AAMAAABk\r\nConnection: ${connection}\r\nUpgrade: h2c\r\n\r\n`

  it('is forwarded as an ordinary request, without its connection headers', async () => {
    const { gatewayUrl, upstream } = await serve(accept)
    const kept = talk(gatewayUrl, h2c('1.1', 'Upgrade, X-Hop, HTTP2-Settings'))
    await expect.poll(() => kept.said).toMatch(/^HTTP\/1\.1 200 /)
    expect(upstream.asked[0].headers).toMatchObject({ 'x-end': '1', 'x-forwarded-host': 'x' })
    for (const name of ['x-hop', 'http2-settings', 'upgrade']) {
      expect(upstream.asked[0].headers).not.toHaveProperty(name)
    }
    expect(kept.socket.destroyed).toBe(false)
    for (const text of [h2c('1.1', 'close, upgrade'), h2c('1.0', 'Upgrade')]) {
      const client = talk(gatewayUrl, text)
      await expect.poll(() => client.socket.destroyed).toBe(true)
      expect(client.said).toMatch(/^HTTP\/1\.1 200 .*^Connection: close\r$/ims)
    }
  })

  it('may be repeated on one connection', async () => {
    const warnings: string[] = []
    const onWarning = ({ name }: Error) => warnings.push(name)
    process.on('warning', onWarning)
    const { gatewayUrl } = await serve(accept)
    const client = talk(gatewayUrl, '')
    for (let times = 1; times <= 15; times += 1) {
      client.socket.write(h2c('1.1', 'Upgrade'))
      await expect
        .poll(() => client.said.split('HTTP/1.1 ').length, { interval: 5 })
        .toBe(times + 1)
    }
    process.off('warning', onWarning)
    expect(warnings).toEqual([])
  })
})
