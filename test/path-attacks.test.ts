import { parseRule } from 'sluice'
import { afterEach, describe, expect, it } from 'vitest'
import { rawly } from './server/rawly.ts'
import { as, closeAll, serveUpstream, settingsOf, start } from './server/service.ts'

afterEach(closeAll)

describe('the path of a request', () => {
  it('is forwarded byte for byte', async () => {
    const upstream = await serveUpstream()
    const tiers = { free: [parseRule('unlimited')] }
    const { gatewayUrl } = await start(settingsOf({ tiers }, undefined, upstream.url))
    const targets = [
      ...[
        '/?a=%',
        '/?q=%E4',
        '/?%zz',
        '/?a=../b',
        '/?redirect=/a/../b',
        "/?b='<>|#c",
        '/?',
        '/a?b?c',
      ],
      ...['/a/..b', '/a/...', '/a|b"<>', "/a'b{}^`", '/a//b', '/%61', '/A;x=1', '/caf%c3%a9'],
    ]
    for (const target of targets) {
      const request = `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`
      const said = await rawly(gatewayUrl, request, 10_000)
      expect([target, said.slice(9, 12)]).toEqual([target, '200'])
    }
    expect(upstream.asked.map(({ url }) => url)).toEqual(targets)
  })

  it('is refused if an upstream could read another path', async () => {
    const upstream = await serveUpstream()
    const routes = [{ path: '/login', rules: [parseRule('3/1h')] }, { path: '/**' }]
    const { gatewayUrl, apiUrl } = await start(settingsOf({}, routes, upstream.url))
    const targets = [
      ...['//x/login', '///login', '/\\x/login', '/\\login', '/%2f/login', '/%5clogin'],
      ...['/./login', '/x/../login', '/%2e/login', '/x/%2E%2e/login', '/x/..;/login', '/log\tin'],
      ...['/login%00', '/login%09', '/login#', '/login#?x', '/%256cogin', '/login\u00e9'],
      ...['http://x/login', 'http:/login', '*'],
    ]
    for (const target of targets) {
      const text = `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`
      const said = await rawly(gatewayUrl, text, 10_000)
      expect([target, said.slice(9, 12)]).toEqual([target, '400'])
    }
    expect(upstream.asked).toHaveLength(0)
    for (const target of targets.filter((each) => /^[\x20-\x7e]*[\x21-\x7e]$/.test(each))) {
      const { status } = await fetch(`${apiUrl}/v1/auth`, {
        headers: { 'x-forwarded-uri': target },
      })
      expect([target, status]).toEqual([target, 400])
    }
  })

  it('is counted in each accepted spelling', async () => {
    const upstream = await serveUpstream()
    const routes = [{ path: '/login', rules: [parseRule('3/1h')] }, { path: '/**' }]
    const { gatewayUrl } = await start(settingsOf({}, routes, upstream.url))
    const ask = async (path: string) => (await fetch(`${gatewayUrl}${path}`, as('a'))).status
    for (let i = 0; i < 3; i += 1) expect(await ask('/login')).toBe(200)
    for (const path of [
      ...[
        '/login/',
        '/LOGIN',
        '/%6Cogin',
        '/login?',
        '/login?x=//y/../z',
        '/login;x=1',
        '/;/login',
      ],
      ...['/login//', '/login%3Fx', '/login%23x', '/login%3bx'],
    ]) {
      expect([path, await ask(path)]).toEqual([path, 429])
    }
  })

  it('is matched correctly if a segment has only parameters', async () => {
    const rules = [parseRule('1/1h')]
    const routes = [{ path: '/search/*', rules }, { path: '/users/*/y', rules }, { path: '/**' }]
    const { gatewayUrl } = await start(settingsOf({}, routes))
    const ask = async (path: string) => (await fetch(`${gatewayUrl}${path}`, as('a'))).status
    expect([await ask('/search/shoes'), await ask('/users/x/y')]).toEqual([200, 200])
    for (const path of ['/search/;shoes', '/search/%3bshoes', '/users/;/y']) {
      expect([path, await ask(path)]).toEqual([path, 429])
    }
  })
})
