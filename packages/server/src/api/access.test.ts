import type { IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import { type Access, forbids } from './access.ts'

/** The status of the answer; 200 if the caller has access. */
function ask(
  headers: Record<string, string>,
  wanted: Access = 'full',
  remoteAddress = '127.0.0.1',
  tokens: { token: string; access: 'read' | 'full' }[] = [],
): number {
  const request = { headers, socket: { remoteAddress } } as unknown as IncomingMessage
  return forbids(request, wanted, { tokens })?.status ?? 200
}

const host = '127.0.0.1:8081'

describe('access without tokens', () => {
  it('is for local callers, and for the pages that the service serves', () => {
    expect(ask({ host })).toBe(200)
    expect(ask({ host, origin: `http://${host}` })).toBe(200)
    expect(ask({ host, origin: `http://${host}`, 'sec-fetch-site': 'same-origin' })).toBe(200)
    expect(ask({ host: 'localhost:8081', origin: 'https://localhost:8081' })).toBe(200)
    expect(ask({ host: '[::1]:8081', origin: 'http://[::1]:8081' }, 'full', '::1')).toBe(200)
    expect(ask({ host, 'sec-fetch-site': 'none' })).toBe(200)
    expect(ask({ host }, 'full', '192.0.2.1')).toBe(403)
  })

  it.each([
    ['another site', { origin: 'http://evil.example' }],
    ['another port of the machine', { origin: 'http://127.0.0.1:3000' }],
    ['another name of the machine', { origin: 'http://localhost:8081' }],
    ['a page without an origin', { origin: 'null' }],
    ['an origin that begins like ours', { origin: `http://${host}.evil.example` }],
    ['another scheme', { origin: `ftp://${host}` }],
    ['another site that does not name itself', { 'sec-fetch-site': 'cross-site' }],
    ['another port that does not name itself', { 'sec-fetch-site': 'same-site' }],
    ['a name that points at us', { host: 'evil.example' }],
    ['a page of such a name', { host: 'evil.example:8081', origin: 'http://evil.example:8081' }],
    ['no host at all', { host: '', origin: 'http://' }],
  ])('is not for %s', (_who, headers) => {
    expect(ask({ host, ...headers })).toBe(403)
    expect(ask({ host, ...headers }, 'check')).toBe(403)
  })

  it.each(['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip'])(
    'is not for requests through a local proxy, which sends %s',
    (name) => {
      expect(ask({ host, [name]: 'client' }, 'read')).toBe(403)
      expect(ask({ host, [name]: 'client' }, 'full')).toBe(403)
      // A local proxy that requests a decision may forward any client.
      expect(ask({ host, [name]: 'client' }, 'check')).toBe(200)
    },
  )

  it.each(['x-forwarded-uri', 'x-original-uri', 'x-original-url'])(
    'to decisions is for a proxy that passes on what a page said, and asks by %s',
    (name) => {
      const said = { host, origin: 'http://evil.example', 'sec-fetch-site': 'cross-site' }
      expect(ask({ ...said, [name]: '/' }, 'check')).toBe(200)
      expect(ask({ ...said, [name]: '/' }, 'read')).toBe(403)
      expect(ask({ ...said, [name]: '/' }, 'check', '192.0.2.1')).toBe(403)
    },
  )

  it.each([
    ['127.8.9.1', 200],
    ['::1', 200],
    ['::ffff:127.0.0.1', 200],
    ['::ffff:192.0.2.1', 403],
    ['::12', 403],
    ['192.0.2.127', 403],
    ['', 403],
  ])('from %j is answered with %d', (address, status) =>
    expect(ask({ host }, 'full', address)).toBe(status),
  )
})

describe('access with tokens', () => {
  it('needs a token from everywhere, except for local decisions', () => {
    const tokens = [
      { token: 'look', access: 'read' as const },
      { token: 'change', access: 'full' as const },
    ]
    const by = (token: string, wanted: Access) =>
      ask({ host: 'api', authorization: `Bearer ${token}` }, wanted, '192.0.2.1', tokens)
    expect([by('look', 'read'), by('look', 'full'), by('change', 'full')]).toEqual([200, 403, 200])
    expect(by('neither', 'read')).toBe(401)
    expect(ask({ host, origin: `http://${host}` }, 'read', '127.0.0.1', tokens)).toBe(401)
    expect(ask({ host }, 'check', '127.0.0.1', tokens)).toBe(200)
  })

  it('prefers its own header to Authorization, which may be a client’s', () => {
    const tokens = [{ token: 'change', access: 'full' as const }]
    const by = (headers: Record<string, string>) =>
      ask({ host: 'api', ...headers }, 'full', '192.0.2.1', tokens)
    expect(by({ 'x-sluice-token': 'change', authorization: 'Bearer of-a-client' })).toBe(200)
    expect(by({ 'x-sluice-token': 'wrong', authorization: 'Bearer change' })).toBe(401)
    expect(by({ 'x-sluice-token': '' })).toBe(401)
    expect(by({ authorization: 'bearer  change' })).toBe(200)
    for (const authorization of [
      'change',
      'Basic change',
      'Bearer',
      'Bearer chang',
      'Bearer changes',
    ]) {
      expect([authorization, by({ authorization })]).toEqual([authorization, 401])
    }
  })
})
