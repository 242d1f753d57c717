import { createContext, runInContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { addressKey, apiKey, hashLater, jwtSubject } from './identity.ts'

describe('apiKey', () => {
  const keyOf = apiKey((secret: string | undefined) => secret)

  it('is the hash of a secret, at once', () =>
    expect(keyOf('abc')).toBe('key:ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0'))

  it('is the same with only Web Crypto', async () => {
    for (const secret of ['abc', 'ä€😀', 'x'.repeat(100_000)]) {
      expect(keyOf(secret)).toBe(`key:${await hashLater(secret)}`)
    }
  })

  it('leaves a request without a secret to its address', () =>
    expect([keyOf(undefined), keyOf('')]).toEqual([undefined, undefined]))

  it('waits for a secret that comes later', async () =>
    expect(await apiKey(async (secret: string) => secret)('abc')).toBe(keyOf('abc')))

  it('awaits thenables, too', async () => {
    const foreign = runInContext('(secret) => Promise.resolve(secret)', createContext())
    expect(await apiKey(foreign)('abc')).toBe(keyOf('abc'))
  })
})

describe('jwtSubject', () => {
  const keyOf = jwtSubject((claims: object | undefined) => claims)

  it('distinguishes subjects and issuers', () => {
    const all = [
      { sub: 'a' },
      { sub: 'b' },
      { iss: 'a', sub: 'b' },
      { iss: 'ab', sub: '' },
      { iss: '1:a', sub: 'b' },
      { iss: 'x'.repeat(200), sub: 'x'.repeat(200) },
      { iss: 'x'.repeat(201), sub: 'x'.repeat(199) },
    ].map((claims) => keyOf(claims))
    expect(new Set(all).size).toBe(all.length)
    expect(all[0]).toBe('sub:0:1:a')
  })

  it('keeps even huge subjects within the length of a key', async () =>
    expect((await keyOf({ sub: 'x'.repeat(100_000) }))?.length).toBeLessThan(100))

  it.each([undefined, {}, { sub: '' }, { sub: 7 }, { sub: ['a'] }])(
    'leaves %j to the address',
    (claims) => expect(keyOf(claims)).toBeUndefined(),
  )
})

describe('addressKey', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:0:7::1', '2001:db8:0:7:0:0:0:0/64'],
    ['2001:DB8:0:7:ffff::2', '2001:db8:0:7:0:0:0:0/64'],
    ['x-user:alice', undefined],
    ['2001:db8:0:7:0:0:0:0/64', undefined],
  ])('of %j is %j', (text, key) => expect(addressKey(text)).toBe(key))

  it('can be of a smaller or larger network', () => {
    expect(addressKey('2001:db8:0:7::1', 48)).toBe('2001:db8:0:0:0:0:0:0/48')
    expect(addressKey('2001:db8:0:7::1', 128)).toBe('2001:db8:0:7:0:0:0:1')
  })
})

describe('key helpers without a function', () => {
  it('say what to write', () => {
    expect(() => apiKey('x-api-key' as never)).toThrow(
      /got "x-api-key"\. Write apiKey\(\(request\) => request\.headers\['x-api-key'\]\)/,
    )
    expect(() => jwtSubject('sub' as never)).toThrow(/Write jwtSubject\(\(request\) =>/)
  })

  it('say that a token is verified first', () => {
    expect(() => jwtSubject(() => 'eyJhbGciOi' as never)({})).toThrow(/Verify the token first/)
  })
})
