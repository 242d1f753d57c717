import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { STATUS_CODES } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { SignJWT } from 'jose'
import { parseRule } from 'sluice'
import { afterEach, describe, expect, it } from 'vitest'
import { useRedis } from './redis/fixture.ts'
import { as, closeAll, json, serveUpstream, settingsOf, start } from './server/service.ts'

afterEach(closeAll)

/** Sends raw bytes, and returns the first line of each response. */
async function rawly(url: string, text: string): Promise<string[]> {
  return (await talk(url, text)).match(/HTTP\/1\.1 \d+/g) ?? []
}

/** Sends raw bytes, and returns what arrives within 300 ms. */
async function talk(url: string, text: string): Promise<string> {
  const { port } = new URL(url)
  const socket = connect(Number(port), '127.0.0.1')
  let said = ''
  socket.on('data', (data) => {
    said += data
  })
  socket.on('error', () => {})
  socket.write(text)
  await new Promise((resolve) => {
    socket.once('close', resolve)
    setTimeout(() => socket.destroy(), 300)
  })
  return said
}

async function statuses(times: number, url: string, init?: RequestInit): Promise<number[]> {
  const all: number[] = []
  for (let i = 0; i < times; i += 1) all.push((await fetch(url, init)).status)
  return all
}

describe('the gateway', () => {
  it('forwards requests and responses unchanged, and adds rate-limit headers', async () => {
    const upstream = await serveUpstream((request, response) => {
      response.writeHead(201, { 'x-mine': 'yes', 'x-ratelimit-remaining': '9999' })
      request.pipe(response)
    })
    const { gatewayUrl } = await start(settingsOf({}, undefined, upstream.url))
    const body = 'x'.repeat(500_000)
    const trace = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, tracestate: 'x=1' }
    const asked = { method: 'POST', body, headers: { ...trace, baggage: 'k=v' } }
    const response = await fetch(`${gatewayUrl}/a?b=c`, as('alice', asked))
    expect(response.status).toBe(201)
    expect(await response.text()).toBe(body)
    expect(response.headers.get('x-mine')).toBe('yes')
    expect(response.headers.get('x-ratelimit-remaining')).toBe('4')
    expect(upstream.asked[0].url).toBe('/a?b=c')
    expect(upstream.asked[0].headers).toMatchObject({ ...trace, baggage: 'k=v' })
  })

  it('forwards every method, every kind of body, and a 304 with a Content-Length', async () => {
    const upstream = await serveUpstream((request, response) => {
      if (request.method !== 'GET') request.pipe(response)
      else response.writeHead(304, { 'content-length': '1234', etag: '"x"' }).end()
    })
    const { gatewayUrl } = await start(settingsOf({}, undefined, upstream.url))
    const body = '<a/>'
    for (const [method, type] of [
      ['PROPFIND', 'application/xml'],
      ['POST', 'weird'],
      ['POST', ''],
      ['QUERY', 'text/plain;x="'],
    ]) {
      const headers = { 'content-type': type }
      const response = await fetch(gatewayUrl, as(`${method}${type}`, { method, body, headers }))
      expect([response.status, await response.text()]).toEqual([200, body])
      const { method: asked, headers: got } = upstream.asked[upstream.asked.length - 1]
      expect([asked, got['content-type']]).toEqual([method, type])
    }
    const fresh = await fetch(gatewayUrl, as('alice', { headers: { 'if-none-match': '"x"' } }))
    expect([fresh.status, fresh.headers.get('etag')]).toEqual([304, '"x"'])
  })

  it('forwards bodies, also with an Upgrade header, except those of GET', async () => {
    const upstream = await serveUpstream()
    const { gatewayUrl } = await start(settingsOf({}, undefined, upstream.url))
    const offer =
      'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n'
    for (const [method, fields] of [
      ['POST', offer],
      ['DELETE', ''],
    ]) {
      const head = `${method} /x HTTP/1.1\r\nHost: a\r\nx-user: ${method}\r\n${fields}`
      const said = await talk(gatewayUrl, `${head}Content-Length: 5\r\n\r\nhello`)
      expect(said).toMatch(/^HTTP\/1\.1 200 /)
      expect(said).toMatch(/hello/)
    }
    const get = 'GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello'
    expect(await talk(gatewayUrl, get)).toMatch(/^HTTP\/1\.1 400 .*Send it with POST or QUERY/s)
    expect(upstream.asked).toHaveLength(2)
  })

  it('refuses before it calls the upstream, per client', async () => {
    const upstream = await serveUpstream()
    const { gatewayUrl } = await start(settingsOf({}, undefined, upstream.url))
    const all = await Promise.all(Array.from({ length: 20 }, () => fetch(gatewayUrl, as('alice'))))
    expect(all.filter(({ status }) => status === 200)).toHaveLength(5)
    const refused = all.find(({ status }) => status === 429)!
    expect(refused.headers.get('content-type')).toBe('application/problem+json')
    expect(refused.headers.get('retry-after')).toBe('720')
    expect(upstream.asked).toHaveLength(5)
    expect((await fetch(gatewayUrl, as('bob'))).status).toBe(200)
  })

  it('trusts the configured proxies, and forwards the client address', async () => {
    const upstream = await serveUpstream()
    const direct = await start(settingsOf({}, undefined, upstream.url))
    const made = { 'x-forwarded-for': '6.6.6.6', 'x-forwarded-host': 'evil', connection: 'close' }
    await fetch(direct.gatewayUrl, { headers: made })
    expect(upstream.asked[0].headers['x-forwarded-for']).toBe('127.0.0.1')
    expect(upstream.asked[0].headers['x-forwarded-host']).toMatch(/^127\.0\.0\.1:/)
    const behind = await start(settingsOf({ trustProxy: 1 }, undefined, upstream.url))
    await fetch(behind.gatewayUrl, { headers: made })
    expect(upstream.asked[1].headers['x-forwarded-for']).toBe('6.6.6.6, 127.0.0.1')
  })

  it('selects routes with their rules, costs and keys', async () => {
    const { gatewayUrl } = await start(
      settingsOf({ clients: { 'x-user:pat': 'pro' } }, [
        { path: '/open/**', isOpen: true },
        { path: '/search/*', methods: ['GET'], cost: 3 },
        { path: '/own', rules: [parseRule('1/1h')], key: [{ from: 'route' }] },
        { path: '/shadow', rules: [parseRule('1/1h')], shadow: true },
        { path: '/**' },
      ]),
    )
    expect(await statuses(9, `${gatewayUrl}/open/a`, as('a'))).toEqual(Array(9).fill(200))
    expect(await statuses(2, `${gatewayUrl}/search/it`, as('a'))).toEqual([200, 429])
    expect(await statuses(3, `${gatewayUrl}/else`, as('a'))).toEqual([200, 200, 429])
    expect((await fetch(`${gatewayUrl}/own`, as('a'))).status).toBe(200)
    expect((await fetch(`${gatewayUrl}/own`, as('b'))).status).toBe(429)
    expect(await statuses(3, `${gatewayUrl}/shadow`, as('a'))).toEqual([200, 200, 200])
    expect((await fetch(gatewayUrl, as('pat'))).headers.get('x-ratelimit-limit')).toBe('100')
  })

  it('is not fooled by other spellings of a path', async () => {
    const { gatewayUrl } = await start(
      settingsOf({}, [{ path: '/login', rules: [parseRule('1/1h')] }, { path: '/**' }]),
    )
    const ask = (path: string) =>
      rawly(gatewayUrl, `GET ${path} HTTP/1.1\r\nHost: x\r\nx-user: a\r\nConnection: close\r\n\r\n`)
    expect(await ask('/login')).toEqual(['HTTP/1.1 200'])
    for (const path of [
      '/LOGIN',
      '/login/',
      '/l%6fgin',
      '/login?x=/y',
      '/%6Cogin//',
      '/login;x=1',
    ]) {
      expect([path, ...(await ask(path))]).toEqual([path, 'HTTP/1.1 429'])
    }
    for (const path of [
      ...['//login', '/x/../login', '/x/%2e%2e/login', '/./login', '/login%2f', '/x%5clogin', '/%'],
      ...['/login%00', '/x/..;/login', '/log\u00efn', '/%256cogin', '*', 'login', '/x/.%2e/login'],
    ]) {
      expect([path, ...(await ask(path))]).toEqual([path, 'HTTP/1.1 400'])
    }
  })

  it('refuses request smuggling, and requests that are too large', async () => {
    let whole = 0
    const upstream = await serveUpstream((request, response) => {
      request.resume().once('end', () => {
        whole += 1
        response.end()
      })
    })
    const { gatewayUrl } = await start(settingsOf({}, undefined, upstream.url))
    const both = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n'
    expect(await rawly(gatewayUrl, `${both}\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n`)).toEqual([
      'HTTP/1.1 400',
    ])
    const large = new Blob(['x'.repeat(1_000_001)])
    const known = await fetch(gatewayUrl, as('b', { method: 'POST', body: large }))
    expect(known.status).toBe(413)
    const stream = large.stream()
    const unknown = await fetch(
      gatewayUrl,
      as('b', { method: 'POST', body: stream, duplex: 'half' } as RequestInit),
    ).catch(() => undefined)
    // The client may be cut off before it reads the answer, but its body is never forwarded as a
    // whole.
    expect(unknown?.status ?? 413).toBe(413)
    expect(whole).toBe(0)
    expect((await fetch(gatewayUrl, as('c'))).status).toBe(200)
    expect(whole).toBe(1)
    const header = { 'x-large': 'x'.repeat(20_000) }
    expect((await fetch(gatewayUrl, as('d', { headers: header }))).status).toBe(431)
  })

  it('forwards WebSockets, and limits how many are opened', async () => {
    const upstream = await serveUpstream()
    upstream.server.on('upgrade', (request, socket, head) => {
      if (request.url === '/no') return void socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
      const hop = `x-for: ${request.headers['x-forwarded-for']}\r\n`
      const open =
        'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
      socket.write(`${open}${hop}\r\n`)
      if (head.length > 0) socket.write(head)
      socket.pipe(socket)
    })
    const { gatewayUrl } = await start(settingsOf({}, undefined, upstream.url))
    const ask = async (path: string, after = '') => {
      const socket = connect(Number(new URL(gatewayUrl).port), '127.0.0.1')
      let said = ''
      socket.on('data', (data) => {
        said += data
      })
      const lines = [`GET ${path} HTTP/1.1`, 'Host: x', 'x-user: a', 'Connection: Upgrade']
      socket.write(
        `${[...lines, 'Upgrade: websocket', 'Sec-WebSocket-Key: abc'].join('\r\n')}\r\n\r\n`,
      )
      await sleep(60)
      socket.write(after)
      await sleep(60)
      socket.destroy()
      return said
    }
    const opened = await ask('/chat', 'bytes go both ways')
    expect(opened).toMatch(/^HTTP\/1\.1 101 .*x-for: 127\.0\.0\.1.*x-ratelimit-remaining: 4/s)
    expect(opened).toMatch(/\r\n\r\nbytes go both ways$/)
    expect(await ask('/no')).toMatch(/^HTTP\/1\.1 403/)
    expect(await ask('/../chat')).toMatch(/^HTTP\/1\.1 400/)
    const h2c = 'GET /plain HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n'
    expect(await rawly(gatewayUrl, h2c)).toEqual(['HTTP/1.1 200'])
    for (let i = 0; i < 3; i += 1) await ask('/chat')
    expect(await ask('/chat')).toMatch(/^HTTP\/1\.1 429 .*retry-after: 7(19|20)/s)
  })

  it('reports when an upstream is down or too slow', async () => {
    const gone = await start(settingsOf({}, undefined, 'http://127.0.0.1:1'))
    expect((await fetch(gone.gatewayUrl)).status).toBe(502)
    const stuck = await serveUpstream(() => {})
    const upstream = { name: 'stuck', url: stuck.url, timeoutMs: 50 }
    const slow = await start(settingsOf({}, [{ upstream }]))
    expect((await fetch(slow.gatewayUrl)).status).toBe(504)
  })
})

describe('the API', () => {
  it('decides single requests and batches, and reports errors', async () => {
    const { apiUrl } = await start(settingsOf({}, [{ name: 'own', rules: [parseRule('2/1h')] }]))
    const check = async (body: unknown): Promise<Record<string, unknown>> => {
      const response = await fetch(`${apiUrl}/v1/check`, json(body))
      return { status: response.status, ...((await response.json()) as Record<string, unknown>) }
    }
    expect(await check({ key: 'alice', cost: 2 })).toMatchObject({ allowed: true, remaining: 3 })
    expect(await check({ key: 'alice', route: 'own' })).toMatchObject({ remaining: 1 })
    expect(await check({ key: 'alice', tier: 'pro' })).toMatchObject({ remaining: 97 })
    expect(await check({ key: 'alice', tier: 'internal' })).toMatchObject({ remaining: null })
    const many = await check({
      checks: [{ key: 'bob', cost: 5 }, { key: 'bob', route: 'own' }, { key: 'bob' }],
    })
    expect((many.decisions as { allowed: boolean }[]).map(({ allowed }) => allowed)).toEqual([
      true,
      true,
      false,
    ])
    for (const [body, status] of [
      [{}, 400],
      [{ key: '' }, 400],
      [{ key: 'x'.repeat(2_000) }, 400],
      [{ key: 'a', cost: -1 }, 400],
      [{ key: 'a', cost: 1.5 }, 400],
      [{ key: 'a', tier: 'none' }, 400],
      [{ key: 'a', route: 'none' }, 400],
      [{ key: 'a', extra: 1 }, 400],
      [{ checks: Array(1_001).fill({ key: 'a' }) }, 400],
      [[], 400],
      [null, 400],
    ] as const) {
      expect([body, await check(body)]).toMatchObject([
        body,
        {
          ...{ status, type: 'about:blank', title: STATUS_CODES[status] },
          detail: expect.stringMatching(/\w/),
        },
      ])
    }
    expect((await fetch(`${apiUrl}/v1/check`, { method: 'POST', body: 'x' })).status).toBe(415)
    const poisoned = await fetch(`${apiUrl}/v1/check`, {
      ...json({}),
      body: '{"key":"a","__proto__":{"x":1}}',
    })
    expect(poisoned.status).toBe(400)
  })

  it('shows, resets and blocks keys, and changes tiers and rules at run time', async () => {
    const { apiUrl, gatewayUrl, reload } = await start(settingsOf({}))
    const get = async (path: string) => (await fetch(`${apiUrl}${path}`)).json()
    const remaining = async () =>
      (await fetch(gatewayUrl, as('alice'))).headers.get('x-ratelimit-remaining')
    const key = '/v1/keys/x-user%3Aalice'
    expect(await remaining()).toBe('4')
    expect(await get(key)).toMatchObject({ tier: 'free', limits: { tiers: { remaining: 4 } } })
    expect(await get('/v1/keys?filter=ali')).toMatchObject({ keys: [{ key: 'x-user:alice' }] })
    expect(await get('/v1/keys?filter=nobody')).toEqual({ keys: [], next: null })
    await fetch(`${apiUrl}${key}/block`, json({ duration: '1m' }))
    expect((await fetch(gatewayUrl, as('alice'))).status).toBe(429)
    expect(await get('/v1/top')).toMatchObject({
      keys: [{ key: 'x-user:alice', refused: 1, shadowed: 0 }],
    })
    await fetch(`${apiUrl}${key}`, { method: 'DELETE' })
    expect(await remaining()).toBe('4')
    const client = '/v1/clients/x-user%3Aalice'
    await fetch(`${apiUrl}${client}/tier`, json({ tier: 'pro' }, 'PUT'))
    expect(await remaining()).toBe('98')
    await reload()
    expect(await remaining()).toBe('97')
    await fetch(`${apiUrl}${client}/rules`, json({ rules: '50/1h' }, 'PUT'))
    expect(await remaining()).toBe('46')
    await fetch(`${apiUrl}${client}/rules`, { method: 'DELETE' })
    expect(await remaining()).toBe('95')
    const metrics = await (await fetch(`${apiUrl}/metrics`)).text()
    expect(metrics).toMatch(/sluice_decisions_total\{[^}]*outcome="refused"[^}]*\} 1\n/)
    expect(metrics).not.toContain('alice')
  })

  it('resets, blocks and unblocks a key in all limiters', async () => {
    const { apiUrl, gatewayUrl } = await start(
      settingsOf({}, [
        { path: '/own', rules: [parseRule('1/1h')] },
        { path: '/**', cost: 5 },
      ]),
    )
    const both = async (user: string) => [
      ...(await statuses(1, `${gatewayUrl}/own`, as(user))),
      ...(await statuses(1, gatewayUrl, as(user))),
    ]
    const key = `${apiUrl}/v1/keys/x-user%3Aalice`
    expect([await both('alice'), await both('alice'), await both('bob')]).toEqual([
      [200, 200],
      [429, 429],
      [200, 200],
    ])
    await fetch(key, { method: 'DELETE' })
    expect([await both('alice'), await both('bob')]).toEqual([
      [200, 200],
      [429, 429],
    ])
    await fetch(`${apiUrl}/v1/keys`, { method: 'DELETE' })
    expect(await both('bob')).toEqual([200, 200])
    await fetch(`${key}/block`, json({ duration: '1h' }))
    expect(await both('alice')).toEqual([429, 429])
    await fetch(`${key}/block`, { method: 'DELETE' })
    expect(await both('alice')).toEqual([200, 200])
  })

  it('refuses a blocked key on shadow routes, too, and logs it as refused', async () => {
    const { apiUrl, gatewayUrl } = await start(
      settingsOf({}, [{ name: 'trial', rules: [parseRule('1/10s')], shadow: true }]),
    )
    const auth = `${apiUrl}/v1/auth`
    const asked = as('alice', { headers: { 'x-forwarded-uri': '/' } })
    expect(await statuses(2, gatewayUrl, as('alice'))).toEqual([200, 200])
    expect(await statuses(1, auth, asked)).toEqual([200])
    await fetch(`${apiUrl}/v1/keys/x-user%3Aalice/block`, json({ duration: '1m' }))
    const refused = await fetch(gatewayUrl, as('alice'))
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '60'])
    expect(refused.headers.get('ratelimit')).toBeNull()
    expect(await statuses(1, auth, asked)).toEqual([429])
    expect(await statuses(1, `${auth}?refuse=403`, asked)).toEqual([403])
    const top = await (await fetch(`${apiUrl}/v1/top`)).json()
    expect(top).toMatchObject({ keys: [{ key: 'x-user:alice', refused: 3, shadowed: 2 }] })
    const metrics = await (await fetch(`${apiUrl}/metrics`)).text()
    expect(metrics).toMatch(/outcome="refused",source="blocked"\} 3\n/)
    expect(metrics).toMatch(/outcome="shadowed",source="store"\} 2\n/)
  })

  it('shows that a key is refused, and for how long', async () => {
    const { apiUrl, gatewayUrl } = await start(settingsOf({}))
    expect(await statuses(6, gatewayUrl, as('alice'))).toEqual([...Array(5).fill(200), 429])
    const get = async (path: string) => (await fetch(`${apiUrl}${path}`)).json()
    const refused = { allowed: false, remaining: 0, retryAfterMs: expect.closeTo(720_000, -4) }
    expect(await get('/v1/keys/x-user%3Aalice')).toMatchObject({ limits: { tiers: refused } })
    expect(await get('/v1/keys')).toMatchObject({ keys: [refused] })
  })

  it('lists assigned tiers and rules, and blocked keys', async () => {
    const given = { clients: { pat: 'pro' }, overrides: { vip: [parseRule('9/1h')] } }
    const { apiUrl } = await start(settingsOf(given, [{ rules: [parseRule('2/1h')] }]))
    const client = (key: string, what: string, body: object) =>
      fetch(`${apiUrl}/v1/clients/${key}/${what}`, json(body, 'PUT'))
    await client('alice', 'tier', { tier: 'pro' })
    await client('__proto__', 'rules', { rules: '5/1s burst 9' })
    await client('alice', 'rules', { rules: '7/1s' })
    const get = async (path: string) => (await fetch(`${apiUrl}${path}`)).json()
    const nothing = { tier: null, rules: null }
    const all = [
      { key: 'alice', tier: 'pro', rules: [{ limit: 7 }], origin: 'api' },
      { ...nothing, key: '__proto__', rules: [{ limit: 5, capacity: 9 }], origin: 'api' },
      { ...nothing, key: 'pat', tier: 'pro', origin: 'config' },
      { ...nothing, key: 'vip', rules: [{ limit: 9 }], origin: 'config' },
    ]
    expect(await get('/v1/clients')).toMatchObject({ clients: all, next: null })
    const first = await get('/v1/clients?count=3')
    expect(first).toMatchObject({ clients: all.slice(0, 3), next: 3 })
    expect(await get('/v1/clients?count=3&from=3')).toMatchObject({ clients: [all[3]], next: null })
    expect(await get('/v1/clients?filter=ali')).toMatchObject({ clients: [all[0]] })

    await fetch(`${apiUrl}/v1/check`, json({ key: 'bob' }))
    await fetch(`${apiUrl}/v1/keys/eve/block`, json({ duration: '10m' }))
    const blocked = await get('/v1/keys?blocked=true&limiter=tiers')
    expect(blocked).toMatchObject({ keys: [{ key: 'eve', source: 'blocked' }], next: null })
    expect((await fetch(`${apiUrl}/v1/keys?blocked=no`)).status).toBe(400)
    const elsewhere = { headers: { 'sec-fetch-site': 'cross-site' } }
    expect((await fetch(`${apiUrl}/v1/clients`, elsewhere)).status).toBe(403)
  })

  it('predicts the answer of each route to a key, at the route’s cost', async () => {
    const { apiUrl, gatewayUrl } = await start(
      settingsOf({}, [
        { name: 'open', path: '/open', isOpen: true },
        { name: 'search', path: '/search', cost: 4 },
        { name: 'dear', path: '/dear', cost: 9 },
        { name: 'trial', path: '/trial', rules: [parseRule('1/1h')], shadow: true },
        { name: 'rest', path: '/**' },
      ]),
    )
    for (const path of ['a', 'b', 'trial']) await fetch(`${gatewayUrl}/${path}`, as('alice'))
    const told = await (await fetch(`${apiUrl}/v1/keys/x-user%3Aalice`)).json()
    const soon = expect.closeTo(720_000, -4)
    const tiers = { limiter: 'tiers', remaining: 3, shadow: false }
    const refused = { allowed: false, wouldAllow: false }
    expect((told as { routes: unknown }).routes).toEqual([
      { route: 'search', ...tiers, cost: 4, ...refused, retryAfterMs: soon },
      { route: 'dear', ...tiers, cost: 9, ...refused, retryAfterMs: null },
      {
        ...{ route: 'trial', limiter: 'trial', cost: 1, shadow: true },
        ...{ allowed: true, wouldAllow: false },
        ...{ remaining: 0, retryAfterMs: expect.closeTo(3_600_000, -4) },
      },
      { route: 'rest', ...tiers, cost: 1, allowed: true, wouldAllow: true, retryAfterMs: 0 },
    ])
  })

  it('lists the keys of all limiters, or of one, page by page', async () => {
    const { apiUrl, gatewayUrl } = await start(
      settingsOf({}, [{ name: 'own', path: '/own', rules: [parseRule('2/1h')] }, { path: '/**' }]),
    )
    const users = ['a', 'b', 'c']
    for (const user of users) await fetch(`${gatewayUrl}/own`, as(user))
    for (const user of users.slice(0, 2)) await fetch(gatewayUrl, as(user))
    interface Page {
      readonly keys: readonly { readonly key: string; readonly limiter: string }[]
      readonly next: number | null
    }
    const list = async (query: string) =>
      (await (await fetch(`${apiUrl}/v1/keys${query}`)).json()) as Page
    const names = ({ keys }: Page) => keys.map(({ key, limiter }) => `${limiter} ${key}`).sort()
    const ofOwn = users.map((user) => `own x-user:${user}`)
    const all = [...ofOwn, 'tiers x-user:a', 'tiers x-user:b']
    expect(names(await list(''))).toEqual(all)
    expect(names(await list('?limiter=own'))).toEqual(ofOwn)
    expect(names(await list('?filter=:b'))).toEqual(['own x-user:b', 'tiers x-user:b'])
    const paged: Page['keys'][number][] = []
    for (let from: number | null = 0; from !== null; ) {
      const page: Page = await list(`?count=2&from=${from}`)
      paged.push(...page.keys)
      from = page.next
    }
    expect(names({ keys: paged, next: null })).toEqual(all)
  })

  it('refuses unknown query parameters', async () => {
    const { apiUrl, gatewayUrl } = await start(settingsOf({}))
    await fetch(gatewayUrl, as('alice'))
    const ask = async (method: string, path: string) => {
      const response = await fetch(`${apiUrl}${path}`, { method })
      return `${response.status} ${((await response.json()) as { detail?: string }).detail}`
    }
    expect(await ask('DELETE', '/v1/keys?key=x')).toMatch(/^400 .*parameter "key"\. It takes none/)
    for (const path of ['/v1/keys?fliter=x', '/v1/keys/x?cost=2', '/v1/top?n=3', '/v1/live?ky=x']) {
      expect(await ask('GET', path)).toMatch(/^400 unknown query parameter/)
    }
    expect(await ask('GET', '/v1/keys?fliter=x')).toMatch(/filter, limiter, blocked, from, count/)
    expect(await ask('GET', '/v1/keys?filter=a&filter=b')).toMatch(/^400 .*"filter" once/)
    expect(await (await fetch(`${apiUrl}/v1/keys`)).json()).toMatchObject({ keys: [{}] })
    expect((await fetch(`${apiUrl}/metrics?x=1`)).status).toBe(200)
    expect((await fetch(`${apiUrl}/v1/keys?fliter=x`, { method: 'HEAD' })).status).toBe(400)
  })

  it('counts by the requested tier, and requests that no limiter decided', async () => {
    const overrides = { 'x-user:bob': [parseRule('1/1h')] }
    const { apiUrl, gatewayUrl } = await start(
      settingsOf({ overrides, denyList: ['192.0.2.1'], trustProxy: 1 }, [{ cost: 2 }]),
    )
    await fetch(`${apiUrl}/v1/check`, json({ key: 'alice', tier: 'pro' }))
    await fetch(`${apiUrl}/v1/check`, json({ checks: [{ key: 'alice', tier: 'internal' }] }))
    expect((await fetch(gatewayUrl, as('bob'))).status).toBe(429)
    const denied = { headers: { 'x-forwarded-for': '192.0.2.1' } }
    expect((await fetch(gatewayUrl, denied)).status).toBe(403)
    const metrics = await (await fetch(`${apiUrl}/metrics`)).text()
    const lines = metrics.split('\n').filter((line) => /^sluice_(undecided|decisions)/.test(line))
    expect(lines.map((line) => line.replace(/"token-bucket"|"unlimited"/, '…'))).toEqual([
      'sluice_decisions_total{route="",tier="pro",rule=…,outcome="allowed",source="store"} 1',
      'sluice_decisions_total{route="",tier="internal",rule=…,outcome="allowed",source="store"} 1',
      'sluice_undecided_refusals_total{route="route-0",reason="cost above capacity"} 1',
      'sluice_undecided_refusals_total{route="route-0",reason="denied"} 1',
    ])
  })

  it('checks the access of tokens', async () => {
    const tokens = [
      { token: 'a'.repeat(20), access: 'read' },
      { token: 'b'.repeat(20), access: 'full' },
    ] as const
    const { apiUrl } = await start(settingsOf({ admin: { tokens } }))
    const ask = async (path: string, method: string, token?: string) => {
      const headers: Record<string, string> = token ? { authorization: `Bearer ${token}` } : {}
      return (await fetch(`${apiUrl}${path}`, { method, headers })).status
    }
    expect(await ask('/healthz', 'GET')).toBe(200)
    expect(await ask('/v1/keys', 'GET')).toBe(401)
    expect(await ask('/v1/keys', 'GET', 'c'.repeat(20))).toBe(401)
    expect(await ask('/v1/keys', 'GET', tokens[0].token)).toBe(200)
    expect(await ask('/v1/keys', 'DELETE', tokens[0].token)).toBe(403)
    expect(await ask('/v1/keys', 'DELETE', tokens[1].token)).toBe(200)
    expect(await ask('/metrics', 'GET')).toBe(401)
    const open = await start(settingsOf({}))
    const rebound = 'GET /v1/keys HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n'
    expect(await rawly(open.apiUrl, rebound)).toEqual(['HTTP/1.1 403'])
  })

  it('answers the forward-auth requests of proxies', async () => {
    const { apiUrl } = await start(
      settingsOf({}, [{ path: '/limited/**', key: [{ from: 'address' }] }]),
    )
    const ask = async (path: string, from: string, query = '') => {
      const headers = { 'x-forwarded-uri': path, 'x-forwarded-for': from }
      return fetch(`${apiUrl}/v1/auth${query}`, { headers })
    }
    const first = await ask('/limited/a', '203.0.113.1')
    expect([first.status, first.headers.get('x-ratelimit-remaining')]).toEqual([200, '4'])
    for (let i = 0; i < 4; i += 1) await ask('/limited/a', '203.0.113.1')
    const refused = await ask('/limited/a', '203.0.113.1')
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '720'])
    expect((await ask('/limited/a', '203.0.113.1', '?refuse=403')).status).toBe(403)
    expect((await ask('/limited/a', '203.0.113.2')).status).toBe(200)
    expect((await ask('/else', '203.0.113.1')).status).toBe(200)
    expect((await ask('/x/../limited', '203.0.113.1')).status).toBe(400)
    // The client's browser headers do not concern the proxy.
    const browser = {
      'x-original-uri': '/else',
      'sec-fetch-site': 'cross-site',
      origin: 'https://a.example',
    }
    expect((await fetch(`${apiUrl}/v1/auth`, { headers: browser })).status).toBe(200)
    const contradicting = { 'x-forwarded-uri': '/else', 'x-original-uri': '/limited/a' }
    expect((await fetch(`${apiUrl}/v1/auth`, { headers: contradicting })).status).toBe(400)
    expect((await ask('/limited/a', '203.0.113.1', '?x=1&refuse=403')).status).toBe(403)
  })
})

describe('the service', () => {
  const redis = useRedis()

  it('reloads its configuration under load without dropping requests or counts', async () => {
    const upstream = await serveUpstream()
    const service = await start(settingsOf({}, undefined, upstream.url))
    let isOver = false
    const seen: number[] = []
    const load = Array.from({ length: 8 }, async (_, i) => {
      for (;;) {
        const isLast = isOver
        const { status } = await fetch(service.gatewayUrl, as(`user-${i}`))
        seen.push(status)
        // Each client goes on until the last configuration refuses it.
        if (isLast && status !== 200) return
      }
    })
    for (let i = 0; i < 10; i += 1) {
      const limit = 5 + (i % 2)
      service.next = () =>
        settingsOf(
          { tiers: { free: [parseRule(`${limit}/1h`)], [`tier-${i}`]: [parseRule('9/1d gcra')] } },
          undefined,
          upstream.url,
        )
      await service.reload()
      await sleep(20)
    }
    isOver = true
    await Promise.all(load)
    expect(seen.filter((status) => status !== 200 && status !== 429)).toEqual([])
    // Six at most, since used units are carried over each time.
    expect(upstream.asked.length).toBe(8 * 6)
  })

  it('changes nothing if the configuration is invalid', async () => {
    const service = await start(settingsOf({}))
    await fetch(service.gatewayUrl, as('alice'))
    service.next = () => {
      throw new Error('bad')
    }
    await expect(service.reload()).rejects.toThrow('bad')
    const { headers } = await fetch(service.gatewayUrl, as('alice'))
    expect(headers.get('x-ratelimit-remaining')).toBe('3')
  })

  it('shares limits with another service over Redis, and continues without it', async () => {
    const store = {
      ...settingsOf({}).store,
      kind: 'redis' as const,
      urls: [`redis://127.0.0.1:${redis.server.port}`],
      prefix: 'service',
    }
    const two = [await start(settingsOf({ store })), await start(settingsOf({ store }))]
    const all = await Promise.all(
      Array.from({ length: 40 }, (_, i) => fetch(two[i % 2].gatewayUrl, as('alice'))),
    )
    expect(all.filter(({ status }) => status === 200)).toHaveLength(5)
    expect(all.filter(({ status }) => status === 429)).toHaveLength(35)
  })

  it('shares assigned tiers and rules with another service over Redis', async () => {
    const urls = [`redis://127.0.0.1:${redis.server.port}`]
    const store = { ...settingsOf({}).store, kind: 'redis' as const, urls, prefix: 'assigned' }
    const settings = settingsOf({ store, assignments: { kind: 'redis' } })
    const two = [await start(settings), await start(settings)]
    const left = async (i: number) =>
      (await fetch(two[i].gatewayUrl, as('alice'))).headers.get('x-ratelimit-remaining')
    const client = (i: number, what: string) =>
      `${two[i].apiUrl}/v1/clients/${encodeURIComponent('x-user:alice')}/${what}`
    expect(await left(0)).toBe('4')
    await fetch(client(0, 'tier'), json({ tier: 'pro' }, 'PUT'))
    expect(await left(0)).toBe('98')
    await expect.poll(() => left(1), { timeout: 5_000 }).toMatch(/^9\d$/)
    await fetch(client(1, 'rules'), json({ rules: ['1000/1h'] }, 'PUT'))
    await expect.poll(() => left(0), { timeout: 5_000 }).toMatch(/^9\d\d$/)
    // A reset of used units must keep assigned tiers.
    await fetch(`${two[0].apiUrl}/v1/keys`, { method: 'DELETE' })
    const third = await start(settings)
    two.push(third)
    expect(await left(2)).toBe('999')
    await fetch(client(2, 'rules'), { method: 'DELETE' })
    await fetch(client(2, 'tier'), { method: 'DELETE' })
    await expect.poll(() => left(0), { timeout: 5_000 }).toMatch(/^[0-4]$/)
    expect((await fetch(client(0, 'tier'), json({ tier: 'gold' }, 'PUT'))).status).toBe(400)
    // Malformed values there must not crash a service.
    await redis.client.hset(
      'assigned:assignments',
      'tier:',
      'pro',
      `tier:${'x'.repeat(1_025)}`,
      'pro',
    )
    await redis.client.hset(
      'assigned:assignments',
      'rules:x-user:alice',
      '["5/1s","6/1s"]',
      'odd',
      '',
    )
    await redis.client.hset('assigned:assignments', 'tier:x-user:carol', 'pro', 'version', 'new')
    const limitOf = async () => (await fetch(two[0].gatewayUrl, as('carol'))).headers
    await expect
      .poll(async () => (await limitOf()).get('x-ratelimit-limit'), { timeout: 5_000 })
      .toBe('100')
    expect((await fetch(two[0].gatewayUrl, as('alice'))).status).toBeLessThan(500)
    await redis.server.kill()
    await expect
      .poll(async () => (await fetch(client(0, 'tier'), json({ tier: 'pro' }, 'PUT'))).status)
      .toBe(503)
    expect(
      await (await fetch(client(0, 'tier'), json({ tier: 'pro' }, 'PUT'))).json(),
    ).toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })
    await redis.server.start()
  })

  it.each([
    ['closed', 503, 503],
    ['local', 200, 200],
  ] as const)('is ready without its store unless that is to be %s', async (onFailure, ...all) => {
    const away = { kind: 'redis' as const, urls: ['redis://127.0.0.1:1'], timeoutMs: 20 }
    const store = { ...settingsOf({}).store, ...away, onFailure }
    const { apiUrl, gatewayUrl } = await start(settingsOf({ store }))
    const ready = async () => (await fetch(`${apiUrl}/readyz`)).status
    expect(await ready()).toBe(200)
    const [status, readyStatus] = all
    expect(await statuses(5, gatewayUrl, as('alice'))).toEqual(Array(5).fill(status))
    await expect
      .poll(async () => await (await fetch(`${apiUrl}/metrics`)).text())
      .toMatch(/^sluice_store_degraded 1$/m)
    expect(await ready()).toBe(readyStatus)
  })

  it('logs decisions, and identifies clients by their verified tokens', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-log-'))
    const file = join(folder, 'decisions.jsonl')
    const secret = 'a secret that is long enough for it'
    const service = await start(
      settingsOf(
        {
          decisionLog: { file, maxBytes: 1_048_576, files: 1 },
          jwt: {
            ...{ jwks: '', publicKey: '', issuer: '', audience: '', header: 'authorization' },
            secret,
          },
        },
        [{ path: '/**', cost: 2, key: [{ from: 'jwt' }] }],
      ),
    )
    const tokenOf = (sub: string, signedWith: string) =>
      new SignJWT({ sub })
        .setProtectedHeader({ alg: 'HS256' })
        .sign(new TextEncoder().encode(signedWith))
    const ask = async (sub: string, signedWith = secret) => {
      const authorization = `Bearer ${await tokenOf(sub, signedWith)}`
      return (await fetch(service.gatewayUrl, { headers: { authorization } })).status
    }
    expect(await ask('alice')).toBe(200)
    expect(await ask('alice')).toBe(200)
    expect(await ask('alice')).toBe(429)
    expect(await ask('bob')).toBe(200)
    // Clients with forged tokens are counted by address, for any number of tokens.
    const others = ['x', 'y', 'z'].map((sub) => ask(sub, 'another secret, which is not the one'))
    expect((await Promise.all(others)).sort()).toEqual([200, 200, 429])
    await fetch(`${service.apiUrl}/v1/check`, json({ key: 'carol', cost: 3 }))
    await service.close()
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
    const told = lines.map((line) => JSON.parse(line))
    expect(told.map(({ key, cost, outcome }) => `${key} ${cost} ${outcome}`).slice(0, 4)).toEqual([
      'sub:alice 2 allowed',
      'sub:alice 2 allowed',
      'sub:alice 2 refused',
      'sub:bob 2 allowed',
    ])
    expect(told.slice(4).map(({ key, cost }) => `${key} ${cost}`)).toEqual([
      ...['127.0.0.1 2', '127.0.0.1 2', '127.0.0.1 2'],
      'carol 3',
    ])
    // Decisions through the API are marked, since their cost is not that of a route.
    expect(told.map(({ api }) => api)).toEqual([...Array(7).fill(undefined), true])
    rmSync(folder, { recursive: true })
  })

  it('finishes requests in flight when it is stopped', async () => {
    const upstream = await serveUpstream(async (_request, response) => {
      await sleep(200)
      response.end('done')
    })
    const service = await start(settingsOf({}, undefined, upstream.url))
    const under = fetch(service.gatewayUrl, as('alice'))
    await sleep(50)
    const closed = service.close()
    const ready = await fetch(`${service.apiUrl}/readyz`)
    expect(await ready.json()).toMatchObject({
      status: 503,
      detail: 'The service is shutting down.',
    })
    expect(await (await under).text()).toBe('done')
    await closed
    await expect(fetch(service.gatewayUrl)).rejects.toThrow()
  })
})
