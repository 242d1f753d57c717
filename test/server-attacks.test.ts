import { parseRule } from 'sluice'
import { afterEach, describe, expect, it } from 'vitest'
import { rawly } from './server/rawly.ts'
import { as, closeAll, json, serveUpstream, settingsOf, start } from './server/service.ts'

afterEach(closeAll)

const once = [{ path: '/own', rules: [parseRule('1/1h')] }, { path: '/**' }]

describe('the gateway under attack', () => {
  it('releases the upstream when an upload is aborted', async () => {
    const upstream = await serveUpstream((request, response) => {
      request.resume().once('end', () => response.end())
    })
    const { gatewayUrl } = await start(
      settingsOf({ tiers: { free: [parseRule('unlimited')] } }, undefined, upstream.url),
    )
    const begun = 'POST /up HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\nabc'
    let broken = 0
    for (let round = 0; round < 5; round += 1) {
      await Promise.all(Array.from({ length: 10 }, () => rawly(gatewayUrl, begun, 60)))
      broken += 10
      await expect.poll(() => upstream.asked.filter((each) => each.errored).length).toBe(broken)
    }
    // The present connections are idle, and the next requests reuse them.
    const connections = await new Promise<number>((resolve) =>
      upstream.server.getConnections((_error, count) => resolve(count)),
    )
    expect(connections).toBeLessThanOrEqual(10)
    expect((await fetch(`${gatewayUrl}/ok`)).status).toBe(200)
  })

  it('does not retry an overloaded upstream, and forwards its answer', async () => {
    const upstream = await serveUpstream((_request, response) => {
      response.writeHead(503, { 'retry-after': '3' }).end()
    })
    const { gatewayUrl } = await start(settingsOf({}, undefined, upstream.url))
    expect((await fetch(gatewayUrl)).status).toBe(503)
    expect(upstream.asked).toHaveLength(1)
  })

  it('answers for an upstream that sends an invalid status', async () => {
    const upstream = await serveUpstream(({ socket }) => {
      socket.end('HTTP/1.1 999 Odd\r\nContent-Length: 2\r\n\r\nok')
    })
    const { gatewayUrl } = await start(settingsOf({}, undefined, upstream.url))
    const response = await fetch(gatewayUrl)
    expect([response.status, await response.json()]).toMatchObject([502, { status: 502 }])
  })

  it('survives an upstream that repeats connection headers', async () => {
    const upstream = await serveUpstream(({ socket }) => {
      const fields = 'Connection: close\r\nConnection: X-Own\r\nX-Own: 1\r\nX-Kept: 2\r\n'
      socket.end(`HTTP/1.1 200 OK\r\n${fields}Content-Length: 2\r\n\r\nok`)
    })
    const { gatewayUrl } = await start(settingsOf({}, undefined, upstream.url))
    const { status, headers } = await fetch(gatewayUrl)
    expect([status, headers.get('x-own'), headers.get('x-kept')]).toEqual([200, null, '2'])
  })

  it('aborts the upstream request of a client that has left', async () => {
    const upstream = await serveUpstream(() => {})
    const { gatewayUrl } = await start(settingsOf({}, undefined, upstream.url))
    await rawly(gatewayUrl, 'GET /never HTTP/1.1\r\nHost: x\r\n\r\n')
    expect(upstream.asked).toHaveLength(1)
    await expect.poll(() => upstream.asked[0].socket.destroyed).toBe(true)
  })

  it('does not forward a body with an unsupported transfer coding', async () => {
    const upstream = await serveUpstream()
    const { gatewayUrl } = await start(settingsOf({}, undefined, upstream.url))
    const post = (coding: string) =>
      rawly(
        gatewayUrl,
        `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: ${coding}\r\n\r\n3\r\nabc\r\n0\r\n\r\n`,
      )
    const refused = await post('gzip, chunked')
    expect(refused).toMatch(/^HTTP\/1\.1 501 .*problem\+json/s)
    expect(refused).toMatch(/^connection: close\r$/im)
    expect(upstream.asked).toHaveLength(0)
    expect(await post('Chunked')).toMatch(/^HTTP\/1\.1 200 .*abc/s)
  })

  it('accepts bodies from clients that send Expect: 100-continue', async () => {
    const upstream = await serveUpstream()
    const { gatewayUrl } = await start(settingsOf({}, undefined, upstream.url))
    const head = 'POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n'
    expect(await rawly(gatewayUrl, `${head}abc`)).toMatch(/100 Continue.*HTTP\/1\.1 200.*abc/s)
  })

  it('counts requests that look like CORS preflights', async () => {
    const { gatewayUrl } = await start(settingsOf({}, once))
    const preflight = {
      method: 'OPTIONS',
      headers: { origin: 'https://a.example', 'access-control-request-method': 'GET' },
    }
    expect((await fetch(`${gatewayUrl}/own`, as('a', preflight))).status).toBe(200)
    expect((await fetch(`${gatewayUrl}/own`, as('a', preflight))).status).toBe(429)
  })

  it('refuses denied addresses on routes without limits, too', async () => {
    const { gatewayUrl } = await start(settingsOf({ denyList: ['127.0.0.1'] }, [{ isOpen: true }]))
    expect((await fetch(gatewayUrl)).status).toBe(403)
    const open = await start(settingsOf({ denyList: ['10.0.0.1'] }, [{ isOpen: true }]))
    for (let i = 0; i < 9; i += 1) expect((await fetch(open.gatewayUrl)).status).toBe(200)
  })

  it('forwards proxy headers only from trusted proxies', async () => {
    const upstream = await serveUpstream()
    const made = { 'x-forwarded-for': '9.9.9.9', 'x-real-ip': '9.9.9.9', forwarded: 'for=9.9.9.9' }
    for (const [trustProxy, expected] of [
      [['10.0.0.0/8'], '127.0.0.1'],
      [['127.0.0.0/8'], '9.9.9.9, 127.0.0.1'],
    ] as const) {
      const { gatewayUrl } = await start(settingsOf({ trustProxy }, undefined, upstream.url))
      await fetch(gatewayUrl, { headers: made })
      expect(upstream.asked.at(-1)?.headers['x-forwarded-for']).toBe(expected)
    }
    expect(upstream.asked[0].headers['x-real-ip']).toBeUndefined()
  })

  it('recognizes all spellings of a host, or refuses them', async () => {
    const { gatewayUrl } = await start(
      settingsOf({}, [
        { host: 'api.example.com', rules: [parseRule('1/1h')], key: [{ from: 'route' }] },
        { path: '/**' },
      ]),
    )
    const ask = async (...hosts: string[]) => {
      const lines = hosts.map((host) => `Host: ${host}\r\n`).join('')
      const said = await rawly(
        gatewayUrl,
        `GET / HTTP/1.1\r\n${lines}Connection: close\r\n\r\n`,
        60,
      )
      return said.slice(9, 12)
    }
    expect(await ask('api.example.com')).toBe('200')
    for (const host of ['API.example.com', 'api.example.com:', 'api.example.com.:80']) {
      expect([host, await ask(host)]).toEqual([host, '429'])
    }
    for (const host of ['api.example.com:80:80', 'x@api.example.com', 'api.example.com,', 'a..b']) {
      expect([host, await ask(host)]).toEqual([host, '400'])
    }
    expect(await ask('other', 'api.example.com')).toBe('400')
  })

  it('makes short keys of many long parts', async () => {
    const key = ['a', 'b', 'c', 'd', 'e'].map((name) => ({ from: 'header' as const, name }))
    const { gatewayUrl } = await start(settingsOf({}, [{ key }]))
    const headers = Object.fromEntries(key.map(({ name }) => [name, name.repeat(250)]))
    const { status, headers: fields } = await fetch(gatewayUrl, { headers })
    expect([status, fields.get('x-ratelimit-remaining')]).toEqual([200, '4'])
  })
})

describe('the API under attack', () => {
  it('refuses rules that would break a client, and says why', async () => {
    const { apiUrl, gatewayUrl } = await start(settingsOf({}))
    const put = json({ rules: ['5/1h', '9/1m'] }, 'PUT')
    const response = await fetch(`${apiUrl}/v1/clients/x-user%3Aa/rules`, put)
    expect(await response.json()).toMatchObject({ status: 400, code: 'SLUICE_RULE_DUPLICATE' })
    expect((await fetch(gatewayUrl, as('a'))).status).toBe(200)
  })

  it('reports errors of a configuration', async () => {
    const service = await start(settingsOf({}))
    service.next = () => {
      throw Object.assign(new Error('a.yaml:1:1 tiers: missing'), { problems: [{ line: 1 }] })
    }
    const response = await fetch(`${service.apiUrl}/v1/reload`, { method: 'POST' })
    expect(await response.json()).toMatchObject({ status: 422, problems: [{ line: 1 }] })
    service.next = () => settingsOf({}, [{ name: 'tiers', rules: [parseRule('1/1h')] }])
    expect((await fetch(`${service.apiUrl}/v1/reload`, { method: 'POST' })).status).toBe(400)
  })

  it('refuses requests from web pages', async () => {
    const { apiUrl } = await start(settingsOf({}))
    const headers = { origin: 'http://evil.example' }
    expect((await fetch(`${apiUrl}/v1/reload`, { method: 'POST', headers })).status).toBe(403)
  })

  it.each(['application/json', 'application/x-www-form-urlencoded', 'multipart/form-data'])(
    'answers proxies that forward a content type of %s',
    async (type) => {
      const { apiUrl } = await start(settingsOf({}))
      const headers = { 'content-type': type, 'x-forwarded-uri': '/a' }
      expect((await fetch(`${apiUrl}/v1/auth`, { method: 'POST', headers })).status).toBe(200)
    },
  )

  it('answers malformed requests with problem documents, too', async () => {
    const { apiUrl } = await start(settingsOf({}))
    for (const path of ['/v1/keys/%', `/v1/keys/${'x'.repeat(7_000)}`]) {
      const { status, headers } = await fetch(`${apiUrl}${path}`)
      expect([status, headers.get('content-type')]).toEqual([
        400,
        expect.stringContaining('problem+json'),
      ])
    }
  })
})
