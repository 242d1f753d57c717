import { afterEach, describe, expect, it } from 'vitest'
import {
  type Ask,
  ask,
  failOpen,
  routes,
  startAll,
  stopAll,
  swap,
  token,
  tokens,
} from './server/behind-nginx.ts'
import type { Nginx } from './server/nginx.ts'
import { rawly } from './server/rawly.ts'
import { serveUpstream, settingsOf, start } from './server/service.ts'

afterEach(stopAll)

async function statuses(paths: readonly string[], nginx: Nginx, asked?: Ask): Promise<string[]> {
  const all: string[] = []
  for (const path of paths) all.push(`${path} ${(await ask(nginx, path, asked)).status}`)
  return all
}

async function useUp(nginx: Nginx, asked?: Ask): Promise<void> {
  for (let i = 0; i < 5; i += 1) await ask(nginx, '/limited/a', asked)
}

describe('nginx, as the document sets it up', () => {
  it('admits exactly the limit of a burst', async () => {
    const { nginx, upstream } = await startAll()
    const all = await Promise.all(Array.from({ length: 60 }, () => ask(nginx, '/limited/a')))
    const count = (wanted: number) => all.filter(({ status }) => status === wanted).length
    expect([count(200), count(429)]).toEqual([5, 55])
    expect(upstream.asked).toHaveLength(5)
  })

  it('tells admitted clients their remaining units', async () => {
    const { nginx } = await startAll()
    const { status, headers, body } = await ask(nginx, '/limited/a', { method: 'POST', body: 'hi' })
    expect([status, body]).toEqual([200, 'hi'])
    expect(headers).toMatchObject({
      'x-ratelimit-limit': '5',
      'x-ratelimit-remaining': '4',
      'x-ratelimit-reset': expect.stringMatching(/^\d+$/),
      ratelimit: expect.stringMatching(/;r=4;t=\d+/),
      'ratelimit-policy': expect.stringContaining(';q=5;w=3600'),
    })
    expect(headers).not.toHaveProperty('retry-after')
  })

  it('tells refused clients when to retry', async () => {
    const { nginx } = await startAll()
    await useUp(nginx)
    const { status, headers, body } = await ask(nginx, '/limited/a', { method: 'POST', body: 'hi' })
    expect(status).toBe(429)
    expect(headers).toMatchObject({
      'content-type': 'application/problem+json',
      'retry-after': '720',
      'x-ratelimit-limit': '5',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': expect.stringMatching(/^\d+$/),
      ratelimit: expect.stringMatching(/;r=0;t=\d+/),
      'ratelimit-policy': expect.stringContaining(';q=5;w=3600'),
    })
    expect(JSON.parse(body)).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Quota Exceeded',
      status: 429,
      detail: 'Too many requests. Try again in 720 s.',
    })
  })

  it('forwards requests without a limit, and a 403 of the upstream', async () => {
    const { nginx } = await startAll()
    const paths = ['/limited/broken', ...Array<string>(7).fill('/free')]
    expect(await statuses(paths, nginx)).toEqual([
      '/limited/broken 403',
      ...Array(7).fill('/free 200'),
    ])
  })

  it('counts clients by their addresses', async () => {
    const { nginx } = await startAll()
    await useUp(nginx, { from: '127.0.0.2' })
    expect((await ask(nginx, '/limited/a', { from: '127.0.0.2' })).status).toBe(429)
    const other = await ask(nginx, '/limited/a', { from: '127.0.0.3' })
    expect([other.status, other.headers['x-ratelimit-remaining']]).toEqual([200, '4'])
  })

  it('counts clients by a header that it forwards', async () => {
    const { nginx } = await startAll({ routes: [{ key: [{ from: 'header', name: 'x-api-key' }] }] })
    await useUp(nginx, { headers: { 'x-api-key': 'one' } })
    const by = async (key: string) =>
      (await ask(nginx, '/limited/a', { headers: { 'x-api-key': key } })).status
    expect([await by('one'), await by('two')]).toEqual([429, 200])
  })

  it('forwards exactly the header that was counted', async () => {
    const { nginx, upstream } = await startAll({
      routes: [{ key: [{ from: 'api-key', name: 'x-api-key' }] }],
    })
    const two = (first: string, second: string) =>
      rawly(
        nginx.url,
        `GET /limited/a HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${first}\r\nX-Api-Key: ${second}\r\nX_Api_Key: ${second}\r\nConnection: close\r\n\r\n`,
        1_000,
      )
    const said: string[] = []
    for (let i = 0; i < 20; i += 1) said.push((await two('one', 'other')).slice(9, 12))
    // nginx uses the first one only, or both.
    expect([
      Array(20).fill('400'),
      [...Array(5).fill('200'), ...Array(15).fill('429')],
    ]).toContainEqual(said)
    for (let i = 0; i < 20; i += 1) await two(`made-up-${i}`, 'other')
    const read = upstream.asked.flatMap(({ rawHeaders }) => rawHeaders)
    expect(read.filter((text) => text.includes('other'))).toEqual([])
    await ask(nginx, '/limited/a', { headers: { 'x-api-key': 'third' } })
    expect(upstream.asked.at(-1)?.headers['x-api-key']).toBe('third')
    await ask(nginx, '/limited/a')
    expect(upstream.asked.at(-1)?.headers).not.toHaveProperty('x-api-key')
  })

  it.each<Record<string, string>>([
    { 'x-forwarded-for': '203.0.113.7' },
    { forwarded: 'for=203.0.113.7' },
    { 'x-real-ip': '203.0.113.7' },
    { 'x-forwarded-uri': '/free' },
    { 'x-original-uri': '/free' },
    { 'x-original-url': '/free', 'x-rewrite-url': '/free' },
    { 'x-forwarded-host': 'other.example', 'x-original-host': 'other.example' },
    { 'x-forwarded-method': 'DELETE', 'x-original-method': 'DELETE' },
    { host: 'other.example' },
    { connection: 'x-forwarded-for, x-forwarded-uri' },
    { authorization: 'Bearer made-up' },
    { origin: 'http://a.example', 'access-control-request-method': 'PUT' },
  ])('ignores forged headers: %o', async (headers) => {
    const { nginx } = await startAll({ settings: { admin: { tokens } } })
    const free = await ask(nginx, '/limited/a', { headers })
    expect([free.status, free.headers['x-ratelimit-remaining']]).toEqual([200, '4'])
    await useUp(nginx)
    expect((await ask(nginx, '/limited/a', { headers })).status).toBe(429)
    const preflight = await ask(nginx, '/limited/a', { headers, method: 'OPTIONS' })
    expect(preflight.status).toBe(429)
  })

  it('refuses addresses of the deny list with any headers', async () => {
    const { nginx, upstream } = await startAll({ settings: { denyList: ['127.0.0.2'] } })
    const headers = { forwarded: 'for=203.0.113.7', 'x-forwarded-for': '203.0.113.7' }
    expect((await ask(nginx, '/limited/a')).status).toBe(403)
    expect((await ask(nginx, '/limited/a', { headers })).status).toBe(403)
    expect(upstream.asked).toHaveLength(0)
    expect((await ask(nginx, '/limited/a', { from: '127.0.0.3' })).status).toBe(200)
  })

  it('is not fooled by other spellings of a path', async () => {
    const { nginx, upstream } = await startAll()
    await useUp(nginx)
    const plain = ['/limited//a', '/LIMITED/a', '/l%69mited', '/limited/?x=/../free']
    expect(await statuses(plain, nginx)).toEqual(plain.map((path) => `${path} 429`))
    const unclear = [
      ...[
        '//limited',
        '//x/limited/a',
        '/limited/../x',
        '/x/../limited/a',
        '/./limited',
        '/x/%2e%2e/limited/a',
        '/limited%2fa',
      ],
      ...['/%256cimited', '/x%5c..%5climited', '/x/..;/limited/a'],
    ]
    expect(await statuses(unclear, nginx)).toEqual(unclear.map((path) => `${path} 403`))
    expect(upstream.asked).toHaveLength(5)
  })

  it('is not fooled by an absolute URL, and hides its auth location from clients', async () => {
    const { nginx, upstream } = await startAll()
    await useUp(nginx)
    const whole = (path: string) => `http://other.example${path}`
    expect((await ask(nginx, whole('/limited/a'))).status).toBe(429)
    expect((await ask(nginx, '/sluice-auth')).status).toBe(404)
    expect((await ask(nginx, '/sluice-auth?refuse=403')).status).toBe(404)
    expect(upstream.asked).toHaveLength(5)
  })

  it('needs a token if it calls the service by another name than localhost', async () => {
    const settings = { admin: { tokens } }
    const named = (text: string) => swap(text, 'Host localhost;', 'Host sluice.internal;')
    const without = await startAll({ settings, edit: named })
    expect((await ask(without.nginx, '/limited/a')).status).toBe(401)
    const none = await startAll({ edit: named })
    expect((await ask(none.nginx, '/limited/a')).status).toBe(403)
    const line = `proxy_set_header Authorization "Bearer ${token}";`
    const edit = (text: string) => swap(named(text), '    internal;', `${line} internal;`)
    const { nginx } = await startAll({ settings, edit })
    expect((await ask(nginx, '/limited/a')).status).toBe(200)
  })

  it('answers 500 while the service is down, and recovers when it is back', async () => {
    const { nginx, service, upstream } = await startAll()
    await service.close()
    expect((await ask(nginx, '/limited/a')).status).toBe(500)
    expect((await ask(nginx, '/free')).status).toBe(500)
    expect(upstream.asked).toHaveLength(0)
    const { hostname, port } = new URL(service.apiUrl)
    await start(settingsOf({ api: { host: hostname, port: Number(port) } }, routes))
    // nginx avoids a failed server for ten seconds only if there is another one.
    expect((await ask(nginx, '/limited/a')).status).toBe(200)
  })
})

/** Adds the fail-open snippet to the server block. */
const opened = (text: string) => swap(text, '  error_page 403', `${failOpen}  error_page 403`)

describe('nginx that fails open', () => {
  it('limits while the service is up', async () => {
    const { nginx } = await startAll({ edit: opened })
    await useUp(nginx)
    expect((await ask(nginx, '/limited/a')).status).toBe(429)
  })

  it('forwards requests, with their bodies, when the service is down', async () => {
    const { nginx, service, upstream } = await startAll({ edit: opened })
    await useUp(nginx)
    await service.close()
    const { status, body } = await ask(nginx, '/limited/a', { method: 'POST', body: 'hi' })
    expect([status, body]).toEqual([200, 'hi'])
    expect(upstream.asked.at(-1)).toMatchObject({ method: 'POST', url: '/limited/a' })
  })

  it('forwards requests when the service is too slow', async () => {
    const { url: apiUrl } = await serveUpstream(() => {})
    const edit = (text: string) => swap(opened(text), 'read_timeout 5s', 'read_timeout 100ms')
    const { nginx } = await startAll({ apiUrl, edit })
    expect((await ask(nginx, '/limited/a')).status).toBe(200)
  })

  it('refuses requests that the service cannot answer', async () => {
    const { nginx, upstream } = await startAll({ edit: opened })
    await useUp(nginx)
    // Each header is as large as nginx allows; together they exceed what the service reads.
    const headers = { 'x-api-key': 'k'.repeat(8_150) }
    const large = await ask(nginx, `/limited/${'a'.repeat(8_150)}`, { headers })
    expect(large.status).toBe(500)
    expect(upstream.asked).toHaveLength(5)
  })
})
