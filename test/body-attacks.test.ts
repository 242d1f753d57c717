import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseRule } from 'sluice'
import { afterEach, describe, expect, it } from 'vitest'
import { closeAll, serveUpstream, settingsOf, start } from './server/service.ts'

afterEach(closeAll)

/** What came back, and how much the server read, until it hung up or a timeout passed. */
interface Said {
  readonly text: string
  readonly sentBytes: number
  readonly isClosed: boolean
}

/**
 * Sends parts as fast as the server reads them. Reads the response afterwards, or at once if told
 * to.
 */
async function send(
  url: string,
  parts: Iterable<string | Buffer>,
  { reads = true, forMs = 10_000 } = {},
): Promise<Said> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  let text = ''
  let isClosed = false
  const end = Promise.race([
    sleep(forMs, undefined, { ref: false }),
    new Promise<void>((resolve) => socket.once('close', () => resolve())),
  ])
  socket.on('error', () => {})
  socket.once('close', () => {
    isClosed = true
  })
  const read = () =>
    socket.on('data', (data) => {
      text += data
    })
  if (reads) read()
  for (const part of parts) {
    if (isClosed) break
    if (socket.write(part)) continue
    await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), end])
  }
  if (!reads) read()
  await end
  const sentBytes = socket.bytesWritten
  socket.destroy()
  return { text, sentBytes, isClosed }
}

const head = (method: string, path: string, more: string) =>
  `${method} ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n\r\n`
const chunked = 'Transfer-Encoding: chunked'
const statuses = ({ text }: Said) => text.match(/HTTP\/1\.1 \d+/g)?.map((line) => line.slice(9))

describe('pipelined requests after one on which the gateway hangs up', () => {
  const unwanted = [
    ['a GET with a body', head('GET', '/a', 'Content-Length: 1').concat('x'), '400'],
    ['a body that is too large', head('POST', '/a', 'Content-Length: 9000000'), '413'],
    [
      'a coding it does not know',
      head('POST', '/a', 'Transfer-Encoding: gzip, chunked').concat('0\r\n\r\n'),
      '501',
    ],
    [
      'a chunked body without a route',
      head('POST', '/none', chunked).concat('1\r\nx\r\n0\r\n\r\n'),
      '404',
    ],
    [
      'a chunked body that is refused',
      head('POST', '/full', chunked).concat('1\r\nx\r\n0\r\n\r\n'),
      '429',
    ],
  ]
  const own = [
    { path: '/full', rules: [parseRule('1/1h')], cost: 1 },
    { path: '/a', key: [{ from: 'address' as const }] },
  ]

  it.each(unwanted)('are dropped: %s', async (_name, text, status) => {
    const upstream = await serveUpstream()
    const { gatewayUrl, log } = await start(settingsOf({}, own, upstream.url))
    expect((await fetch(`${gatewayUrl}/full`)).status).toBe(200)
    for (let i = 0; i < 3; i += 1) {
      const behind = head('GET', '/a', 'X-User: a').repeat(100)
      const said = await send(gatewayUrl, [text + behind])
      expect([statuses(said), said.isClosed]).toEqual([[status], true])
    }
    expect(upstream.asked.map(({ url }) => url)).toEqual(['/full'])
    expect(log.filter(({ level }) => Number(level) >= 50)).toEqual([])
    const { headers } = await fetch(`${gatewayUrl}/a`)
    expect(headers.get('x-ratelimit-remaining')).toBe('4')
  })

  it('do not get past the deny list', async () => {
    const upstream = await serveUpstream()
    const { gatewayUrl } = await start(
      settingsOf({ denyList: ['127.0.0.1'] }, [{ isOpen: true }, {}], upstream.url),
    )
    const behind = head('GET', '/a', 'X-User: a').repeat(200)
    for (let i = 0; i < 4; i += 1) await send(gatewayUrl, [unwanted[0][1] + behind])
    expect(upstream.asked).toEqual([])
  })
})

/** Yields `count` one-byte chunks, a thousand at a time. */
function* bytewise(count: number): Generator<string> {
  for (let i = 0; i < count; i += 1_000) yield '1\r\nx\r\n'.repeat(Math.min(1_000, count - i))
}

function* followed<T>(first: T, rest: Iterable<T>, last: T): Generator<T> {
  yield first
  yield* rest
  yield last
}

describe('a body of one-byte chunks', () => {
  const open = [{ isOpen: true }]

  it('is forwarded in larger pieces', async () => {
    let [pieces, bytes] = [0, 0]
    const upstream = await serveUpstream((request, response) => {
      request.on('data', ({ length }) => {
        pieces += 1
        bytes += length
      })
      request.on('end', () => response.end())
    })
    const { gatewayUrl } = await start(settingsOf({}, open, upstream.url))
    const begin = head('POST', '/a', `${chunked}\r\nConnection: close`)
    const said = await send(gatewayUrl, followed(begin, bytewise(10_000), '0\r\n\r\n'))
    expect([statuses(said), bytes]).toEqual([['200'], 10_000])
    expect(pieces).toBeLessThan(200)
  })

  it('is refused if it has too many', async () => {
    const upstream = await serveUpstream((request, response) => {
      request.resume().on('end', () => response.end())
    })
    const { gatewayUrl } = await start(settingsOf({}, open, upstream.url))
    const said = await send(
      gatewayUrl,
      followed(head('POST', '/a', chunked), bytewise(200_000), ''),
    )
    expect([statuses(said), said.isClosed]).toEqual([['400'], true])
    expect(said.text).toContain('too many small chunks')
  })

  it('may have any number of larger chunks', async () => {
    const upstream = await serveUpstream((request, response) => {
      request.resume().on('end', () => response.end())
    })
    const { gatewayUrl } = await start(
      settingsOf(
        { limits: { ...settingsOf({}).limits, bodyBytes: 10_000_000 } },
        open,
        upstream.url,
      ),
    )
    const part = `40\r\n${'x'.repeat(64)}\r\n`.repeat(100)
    const begin = head('POST', '/a', `${chunked}\r\nConnection: close`)
    const said = await send(gatewayUrl, followed(begin, Array(400).fill(part), '0\r\n\r\n'))
    expect(statuses(said)).toEqual(['200'])
  })
})

describe('a client that keeps sending after a refusal', () => {
  const none = [{ path: '/a', rules: [parseRule('1/1h')] }]
  const large = Buffer.from(`10000\r\n${'x'.repeat(65_536)}\r\n`)

  it.each([
    ['chunked', head('POST', '/a', chunked)],
    ['of a known length', head('POST', '/a', 'Content-Length: 1000000')],
    ['of a length that is too large', head('POST', '/a', 'Content-Length: 1000000000')],
  ])('is cut off: a body %s', async (_name, begin) => {
    const { gatewayUrl } = await start(settingsOf({}, none))
    expect((await fetch(`${gatewayUrl}/a`)).status).toBe(200)
    const most = 20_000
    const parts = followed(Buffer.from(begin), Array<Buffer>(most).fill(large), Buffer.from(''))
    const said = await send(gatewayUrl, parts)
    expect(statuses(said)?.[0]).toMatch(/429|413/)
    expect(said.isClosed).toBe(true)
    // What the gateway reads, plus the buffers of the kernel.
    expect(said.sentBytes).toBeLessThan(30_000_000)
  })

  it('can read the refusal even if it sends its whole body first', async () => {
    const { gatewayUrl } = await start(settingsOf({}, none))
    expect((await fetch(`${gatewayUrl}/a`)).status).toBe(200)
    for (let i = 0; i < 10; i += 1) {
      const begin = Buffer.from(head('POST', '/a', chunked))
      const parts = followed(begin, Array<Buffer>(14).fill(large), Buffer.from('0\r\n\r\n'))
      const said = await send(gatewayUrl, parts, { reads: false })
      expect(said.text).toMatch(/^HTTP\/1\.1 429 .*^connection: close.*quota-exceeded/ims)
    }
  })

  it('is disconnected after a while if it sends nothing more', async () => {
    const { gatewayUrl } = await start(settingsOf({}, none))
    expect((await fetch(`${gatewayUrl}/a`)).status).toBe(200)
    const said = await send(gatewayUrl, [head('POST', '/a', chunked)], { forMs: 8_000 })
    expect([statuses(said), said.isClosed]).toEqual([['429'], true])
  })

  it('keeps its connection if its body is short', async () => {
    const { gatewayUrl } = await start(settingsOf({}, none))
    expect((await fetch(`${gatewayUrl}/a`)).status).toBe(200)
    const short = head('POST', '/a', 'Content-Length: 1000').concat('x'.repeat(1_000))
    const said = await send(gatewayUrl, [short.repeat(5)], { forMs: 200 })
    expect([statuses(said), said.isClosed]).toEqual([Array(5).fill('429'), false])
  })
})

describe('a client that sends Expect: 100-continue', () => {
  const own = [{ path: '/full', rules: [parseRule('1/1h')] }, { path: '/a' }]
  const expects = 'Expect: 100-continue\r\nContent-Length: 5'

  it('gets one 100 Continue when it is admitted', async () => {
    const upstream = await serveUpstream()
    const { gatewayUrl } = await start(settingsOf({}, own, upstream.url))
    const socket = connect(Number(new URL(gatewayUrl).port), '127.0.0.1')
    let text = ''
    const until = async (part: string) => {
      for (let i = 0; i < 200 && !text.includes(part); i += 1) await sleep(10)
    }
    socket.on('data', (data) => {
      text += data
    })
    for (const body of ['hello', 'again']) {
      socket.write(head('POST', '/a', expects))
      await until('100 Continue\r\n\r\n')
      socket.write(body)
      await until(body)
      expect(statuses({ text } as Said)).toEqual(['100', '200'])
      text = ''
    }
    socket.destroy()
    expect(upstream.asked).toHaveLength(2)
  })

  it.each([
    ['above the limit', '/full', '429'],
    ['without a route', '/none', '404'],
    ['with a path that is not clear', '//a', '400'],
  ])('is refused without 100 Continue: %s', async (_name, path, status) => {
    const upstream = await serveUpstream()
    const { gatewayUrl } = await start(settingsOf({}, own, upstream.url))
    expect((await fetch(`${gatewayUrl}/full`)).status).toBe(200)
    const behind = `hello${head('GET', '/a', 'X-User: a')}`
    for (const more of ['', behind]) {
      const said = await send(gatewayUrl, [head('POST', path, expects), more])
      expect([statuses(said), said.isClosed]).toEqual([[status], true])
    }
    expect(upstream.asked.map(({ url }) => url)).toEqual(['/full'])
  })
})
