import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import { clientHeaders, proxyList, upstreamHeaders } from './forwarding.ts'

/** The headers that an upstream gets, from a peer that is a trusted proxy or not. */
function passedOn(headers: IncomingHttpHeaders, isProxy = false): IncomingHttpHeaders {
  const request = { headers, socket: { remoteAddress: '192.0.2.1' } } as unknown as IncomingMessage
  return upstreamHeaders(request, headers, () => isProxy)
}

const ours = {
  'x-forwarded-for': '192.0.2.1',
  'x-forwarded-proto': 'http',
  'x-forwarded-host': 'a.example',
}

describe('the headers of a request', () => {
  it.each([
    ...['connection', 'expect', 'keep-alive', 'proxy-authenticate', 'proxy-authorization'],
    ...['proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
  ])('that are hop-by-hop are not passed on: %s', (name) =>
    expect(passedOn({ host: 'a.example', [name]: 'x', kept: 'y' })).toEqual({
      host: 'a.example',
      kept: 'y',
      ...ours,
    }),
  )

  it('that Connection lists are not passed on', () => {
    const headers = { host: 'a.example', connection: 'close, X-Own', 'x-own': '1' }
    expect(passedOn(headers)).toEqual({ host: 'a.example', ...ours })
  })

  it.each([
    ...['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-port'],
    ...['x-forwarded-proto', 'x-real-ip', 'x-forwarded-prefix', 'x-forwarded-uri'],
    ...['x-original-url', 'x-original-uri', 'x-rewrite-url', 'x-original-method'],
    ...['x_forwarded_for', 'x-forwarded_host', 'x_real_ip', 'x_original_url'],
  ])('about forwarding are passed on from trusted proxies only: %s', (name) => {
    const headers = { host: 'a.example', [name]: 'made up' }
    expect(passedOn(headers)).toEqual({ host: 'a.example', ...ours })
    const before = name === 'x-forwarded-for' ? 'made up, 192.0.2.1' : 'made up'
    expect(passedOn(headers, true)).toEqual({ host: 'a.example', ...ours, [name]: before })
  })
})

describe('the headers of a response', () => {
  it('have no hop-by-hop headers, and no rate-limit headers of the upstream', () => {
    const headers = { connection: 'x-own', 'x-own': '1', 'x-ratelimit-limit': '9', etag: '"x"' }
    expect(clientHeaders(headers, new Set(['x-ratelimit-limit']))).toEqual({ etag: '"x"' })
  })
})

describe('a trusted proxy', () => {
  it('is any peer for a number above 0, and no peer for 0', () =>
    expect([proxyList(1)('192.0.2.1'), proxyList(0)('192.0.2.1')]).toEqual([true, false]))

  it.each([
    ['10.1.2.3', true],
    ['::ffff:10.1.2.3', true],
    ['192.0.2.1', true],
    ['::ffff:192.0.2.1', true],
    ['2001:db8::5', true],
    ['192.0.2.2', false],
    ['::ffff:192.0.2.2', false],
    ['2001:db9::5', false],
    ['unknown', false],
  ])('is one of those in the list: %s, %s', (address, isOne) =>
    expect(proxyList(['10.0.0.0/8', '192.0.2.1', '2001:db8::/32'])(address)).toBe(isOne),
  )
})
