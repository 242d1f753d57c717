import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, tokenBucket } from 'sluice'
import { rateLimit as forFetch } from 'sluice/fetch'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type CommonOptions, servers } from './http/servers.ts'

const five = tokenBucket({ limit: 5, per: '1h' })

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
  vi.restoreAllMocks()
})

/**
 * Starts a server that hangs up on requests with this header, and returns what Node has seen of
 * them.
 */
async function start(name: string, options: CommonOptions) {
  const seen: string[] = []
  const begin = (message: unknown) => {
    const { request } = message as { request: IncomingMessage }
    seen.push(request.url!)
    if (request.headers['x-hang-up'] !== undefined) request.socket.destroy()
  }
  subscribe('http.server.request.start', begin)
  closers.push(() => unsubscribe('http.server.request.start', begin))
  const { port, close } = await servers[name](options)
  closers.push(close)
  return { port, seen }
}

async function write(port: number, text: string): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {}).resume()
  socket.write(text)
  await new Promise((resolve) => socket.once('close', resolve))
}

const plain = 'GET / HTTP/1.1\r\nHost: x\r\nX-Key: alice\r\n\r\n'
const last = 'GET / HTTP/1.1\r\nHost: x\r\nX-Key: alice\r\nX-Hang-Up: 1\r\n\r\n'

// sluice/fetch knows of a connection only what its caller passes.
describe.each(Object.keys(servers).filter((name) => name !== 'fetch'))('%s', (name) => {
  let logged: ReturnType<typeof vi.spyOn>[]
  beforeEach(() => {
    logged = (['error', 'warn', 'log'] as const).map((kind) =>
      vi.spyOn(console, kind).mockImplementation(() => {}),
    )
  })

  it.each<[string, CommonOptions]>([
    ['by its address', {}],
    ['by a key', { byHeaders: true }],
    ['by a deny list', { denyList: ['127.0.0.1'], byHeaders: true }],
  ])('drops pipelined requests after a hang-up, decided %s', async (_name, options) => {
    const limiter = createLimiter(five)
    const ran = vi.fn()
    const { port, seen } = await start(name, { limiter, ran, ...options })
    for (let i = 0; i < 3; i += 1) await write(port, last.repeat(8))
    await sleep(20)
    expect(seen.length).toBeGreaterThan(3)
    expect(ran).not.toHaveBeenCalled()
    expect([...limiter.entries()]).toEqual([])
    for (const log of logged) expect(log).not.toHaveBeenCalled()
  })

  it('counts requests before the hang-up', async () => {
    const limiter = createLimiter(five)
    const { port } = await start(name, { limiter })
    await write(port, plain.repeat(2) + last.repeat(8))
    await vi.waitFor(() => expect(limiter.peek('127.0.0.1').remaining).toBe(3))
  })
})

describe('fetch', () => {
  it('drops a request whose signal has been aborted', async () => {
    const limiter = createLimiter(five)
    const handler = vi.fn(() => new Response('hello'))
    const limited = forFetch({ limiter, key: () => 'alice' })(handler)
    const request = new Request('http://x.example', { signal: AbortSignal.abort() })
    expect((await limited(request)).status).toBe(499)
    expect(handler).not.toHaveBeenCalled()
    expect(limiter.peek('alice').remaining).toBe(5)
  })

  it('still throws if the application passes no address', () =>
    expect(
      forFetch({ rules: five })(() => new Response())(new Request('http://x.example')),
    ).rejects.toMatchObject({ code: 'SLUICE_OPTION' }))
})
