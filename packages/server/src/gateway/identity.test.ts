import type { IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import type { KeyPart, RouteSettings } from '../settings.ts'
import { identityHeaders, plainSecret, unclearHeader } from './identity.ts'

describe('the headers that identify the client', () => {
  it.each<[KeyPart[], string[]]>([
    [[{ from: 'address' }, { from: 'route' }], []],
    [[{ from: 'header', name: 'x-user' }], ['x-user']],
    [
      [{ from: 'api-key', name: 'x-api-key' }, { from: 'jwt' }],
      ['x-api-key', 'authorization'],
    ],
  ])('of %j are %j', (key, names) => {
    const route = { key, isOpen: false } as unknown as RouteSettings
    expect(identityHeaders(route, 'authorization')).toEqual(names)
    expect(identityHeaders({ ...route, isOpen: true }, 'authorization')).toEqual([])
  })

  it.each<[string[], string | undefined]>([
    [['X-Api-Key', 'a'], undefined],
    [['X-Api-Key', 'a', 'Accept', 'b', 'accept', 'c'], undefined],
    [['X-Api-Key', 'a', 'x-api-key', 'a'], 'x-api-key'],
    [['X-Api-Key', 'a', 'X_Api_Key', 'b'], 'x-api-key'],
    [['X_API-KEY', 'b'], 'x-api-key'],
    [['Authorization', 'a', 'authorization', 'b'], 'authorization'],
    [['X-Api-Key', 'a', 'Connection', 'close, X-Api-Key'], 'x-api-key'],
    [['X-Api-Key', 'a', 'Connection', 'keep-alive'], undefined],
  ])('of %j are ambiguous: %s', (rawHeaders, unclear) => {
    const at = rawHeaders.indexOf('Connection')
    const headers = at < 0 ? {} : { connection: rawHeaders[at + 1] }
    const request = { rawHeaders, headers } as unknown as IncomingMessage
    expect(unclearHeader(request, ['x-api-key', 'authorization'])).toBe(unclear)
  })
})

describe('plainSecret', () => {
  it.each([
    'Bearer abC',
    'bearer abC',
    'BEARER   abC',
    'bEaReR \t abC ',
    'Bearer\u00a0abC',
    'Bearer abC\u00a0',
  ])('of %j is that of Bearer abC', (secret) => expect(plainSecret(secret)).toBe('Bearer abC'))

  it.each(['Basic YTo', 'Basic YTo=', 'basic YTp===', 'BASIC  YTr='])(
    'of %j is that of Basic YTo=',
    (secret) => expect(plainSecret(secret)).toBe('Basic YTo='),
  )

  it.each(['abC', 'a, b', 'Bearer', 'Bearer 1|a.b-c_d~e+f/g==', 'Basic YTpi', '', 'a=b c'])(
    'leaves %j as it is',
    (secret) => expect(plainSecret(secret)).toBe(secret),
  )

  it.each([
    ...['Bearer abc 1', 'Bearer abc,1', 'Bearer abc;1', 'Bearer abc\u00851'],
    ...['Token token="abc", nonce="1"', 'Bearer a=b', 'Basic YT.o', 'Basic YTo=YTo', 'Basic Y Y'],
    ...['abc\u00a0', '\u0085abc'],
  ])('of %j is undefined, since servers parse it differently', (secret) =>
    expect(plainSecret(secret)).toBeUndefined(),
  )
})
