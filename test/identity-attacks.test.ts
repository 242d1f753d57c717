import { parseRule } from 'sluice'
import { afterEach, describe, expect, it } from 'vitest'
import type { KeyPart, RouteSettings, Settings } from '../packages/server/src/settings.ts'
import { rawly } from './server/rawly.ts'
import { closeAll, serveUpstream, settingsOf, start } from './server/service.ts'

afterEach(closeAll)

const secret = (name: string): KeyPart => ({ from: 'api-key', name })
const jwt: Settings['jwt'] = {
  ...{ jwks: '', secret: 's'.repeat(32), publicKey: '', issuer: '', audience: '' },
  header: 'authorization',
}

/** Returns how the gateway, and how /v1/auth, answers a request with these fields. */
function serve(key: readonly KeyPart[]) {
  return serveRoutes([{ path: '/**', key, rules: [parseRule('5/1h')] }])
}

async function serveRoutes(routes: Partial<RouteSettings>[]) {
  const upstream = await serveUpstream()
  const { gatewayUrl, apiUrl } = await start(settingsOf({ jwt }, routes, upstream.url))
  const ask = async (url: string, path: string, fields: readonly string[]) => {
    const lines = ['Host: localhost', ...fields, ...(fields.some(isConnection) ? [] : [CLOSE])]
    const said = await rawly(url, `GET ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`, 1_000)
    return said.slice(9, 12)
  }
  return {
    upstream,
    gateway: (...fields: string[]) => ask(gatewayUrl, '/a', fields),
    auth: (...fields: string[]) => ask(apiUrl, '/v1/auth', ['X-Forwarded-Uri: /a', ...fields]),
  }
}

const CLOSE = 'Connection: close'
const isConnection = (field: string) => field.startsWith('Connection:')

describe('a header that identifies the client', () => {
  it.each<[string, KeyPart[], string[]]>([
    ['twice', [secret('x-api-key')], ['X-Api-Key: a', 'X-Api-Key: b']],
    ['twice, of the same', [secret('x-api-key')], ['X-Api-Key: a', 'x-api-key: a']],
    ['twice, where Node keeps one', [secret('authorization')], twice('Authorization')],
    ['twice, with a token', [{ from: 'jwt' }], twice('Authorization')],
    [
      'twice, in a list',
      [{ from: 'address' }, { from: 'header', name: 'x-user' }],
      twice('X-User'),
    ],
    ['also as CGI names it', [secret('x-api-key')], ['X-Api-Key: a', 'X_Api_Key: b']],
    ['only as CGI names it', [secret('x-api-key')], ['X_Api_Key: b']],
    [
      'for this connection',
      [secret('x-api-key')],
      ['X-Api-Key: a', 'Connection: close, X-Api-Key'],
    ],
  ])('is refused if it comes %s', async (_name, key, fields) => {
    const { gateway, auth, upstream } = await serve(key)
    expect([await gateway(...fields), await auth(...fields)]).toEqual(['400', '400'])
    expect(upstream.asked).toEqual([])
  })

  it('may be repeated if it is not part of the key', async () => {
    const { gateway, auth } = await serve([secret('x-api-key')])
    const fields = ['X-Api-Key: a', 'Accept: b', 'Accept: c', 'X-User: a', 'X-User: b']
    expect([await gateway(...fields), await auth(...fields)]).toEqual(['200', '200'])
  })

  it('has one limit for all spellings of its scheme', async () => {
    const { gateway, auth } = await serve([secret('authorization')])
    const asks = ['Bearer', 'bearer', 'BEARER ', 'bEARER\t', 'Bearer  '].map(
      (scheme) => `Authorization: ${scheme} abc`,
    )
    for (const field of asks) expect([field, await gateway(field)]).toEqual([field, '200'])
    for (const field of asks) expect([field, await gateway(field)]).toEqual([field, '429'])
    for (const field of asks) expect([field, await auth(field)]).toEqual([field, '429'])
  })
})

function twice(name: string): string[] {
  return [`${name}: Bearer a`, `${name}: Bearer b`]
}

describe('a header that selects a route', () => {
  const bulk = ['X-Plan: bulk']
  const spellings = [
    ['X-Plan: bulk', 'X-Plan: bulk'],
    ['X-Plan: small', 'X-Plan: bulk'],
    ['X-Plan: bulk', 'X-Plan: small'],
    ['X_Plan: bulk'],
    ['X-Plan: small', 'X_PLAN: bulk'],
  ]

  it('is limited by the rules of each of its values', async () => {
    const rules = [parseRule('1/1h')]
    const routes = [{ headers: { 'x-plan': 'bulk' }, rules }, { rules: [parseRule('2/1h')] }]
    const { gateway, auth } = await serveRoutes(routes)
    expect([await gateway(...bulk), await gateway('X-Plan: small')]).toEqual(['200', '200'])
    for (const fields of spellings) {
      expect([fields, await gateway(...fields), await auth(...fields)]).toEqual([
        fields,
        ...['429', '429'],
      ])
    }
  })

  it('selects a route only if all its values are the same', async () => {
    const routes = [{ headers: { 'x-plan': 'bulk' }, isOpen: true }, { rules: [parseRule('1/1h')] }]
    const { gateway } = await serveRoutes(routes)
    expect([await gateway(), await gateway()]).toEqual(['200', '429'])
    expect(await gateway(...bulk)).toBe('200')
    for (const fields of spellings.slice(0, 3)) {
      expect([fields, await gateway(...fields)]).toEqual([fields, '429'])
    }
  })
})

describe('a forwarded method or URI', () => {
  it.each([
    ['X-Forwarded-Uri: /b?x'],
    ['X-Forwarded-Uri: /a'],
    ['X-Original-Uri: /b'],
    ['X-Forwarded-Method: GET', 'X-Forwarded-Method: PUT'],
    ['X-Forwarded-Host: a.example', 'X-Forwarded-Host: b.example'],
    ['X-Forwarded-Host: a.example:80:80'],
  ])('is refused if it is ambiguous or missing: %s', async (...fields) => {
    const { auth } = await serve([{ from: 'address' }])
    expect(await auth(...fields)).toBe('400')
  })
})
