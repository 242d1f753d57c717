import type { IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import type { KeyPart, RouteSettings } from '../settings.ts'
import { routeKey } from './route-key.ts'
import type { VerifiedTokens } from './verified-tokens.ts'

/** The key of a request with these headers. */
function keyOf(key: KeyPart[], headers: Record<string, string>, tokens?: VerifiedTokens) {
  const sources = { addressOf: () => '192.0.2.1', tokens }
  const read = routeKey({ key, name: 'search' } as unknown as RouteSettings, sources)
  return read({ headers } as unknown as IncomingMessage)
}

const header = (name: string) => ({ from: 'header', name }) as const
const secret = { from: 'api-key', name: 'x-api-key' } as const

describe('the key of a route', () => {
  it('is readable, or the address if it is missing', () => {
    expect(keyOf([header('x-user')], { 'x-user': 'alice' })).toBe('x-user:alice')
    expect(keyOf([header('x-user')], { 'x-user': '' })).toBe('192.0.2.1')
    expect(keyOf([{ from: 'route' }], {})).toBe('search')
  })

  it('is the hash of an API key, by itself and among other parts', () => {
    const hash = 'key:ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0'
    expect(keyOf([secret], { 'x-api-key': 'abc' })).toBe(hash)
    expect(keyOf([secret, { from: 'route' }], { 'x-api-key': 'abc' })).toBe(`47:${hash}6:search`)
  })

  it('is the address if a secret is ambiguous', () => {
    const parts = [{ from: 'api-key', name: 'authorization' }] as const
    expect(keyOf([...parts], { authorization: 'Bearer abc 1' })).toBe('192.0.2.1')
  })

  it('is the same for each spelling of a scheme', () => {
    const by = (authorization: string) =>
      keyOf([{ from: 'api-key', name: 'authorization' }], { authorization })
    const spellings = Array.from({ length: 64 }, (_, bits) =>
      [...'bearer'].map((char, i) => ((bits >> i) & 1 ? char.toUpperCase() : char)).join(''),
    )
    const keys = spellings.flatMap((scheme) =>
      [' ', '  ', '\t'].map((space) => by(`${scheme}${space}abc`)),
    )
    expect(new Set(keys)).toEqual(new Set([by('Bearer abc')]))
    expect(by('Bearer abC')).not.toBe(by('Bearer abc'))
  })

  it('keeps different parts apart', () => {
    const parts = [header('a'), header('b')]
    const all = [
      { a: 'x', b: 'yb:z' },
      { a: 'xb:y', b: 'z' },
      { a: 'x'.repeat(200), b: 'y'.repeat(200) },
    ].map((headers) => keyOf(parts, headers))
    expect(new Set(all).size).toBe(3)
    expect(all[0]).toBe('3:a:x6:b:yb:z')
  })

  it('is never longer than a limiter accepts', () => {
    const parts = ['a', 'b', 'c', 'd', 'e'].map(header)
    const headers = Object.fromEntries(parts.map(({ name }) => [name, name.repeat(250)]))
    expect(keyOf(parts, headers)).toMatch(/^key:[\w-]{43}$/)
    expect(keyOf([header('a')], { a: 'a'.repeat(257) })).toMatch(/^key:[\w-]{43}$/)
  })

  it.each([
    [{ sub: 'alice' }, 'sub:alice'],
    [{ sub: 7 as never }, '192.0.2.1'],
    [undefined, '192.0.2.1'],
  ])('of a token with %j is %s, also if it is verified asynchronously', async (claims, key) => {
    const jwt = [{ from: 'jwt' }] as const
    expect(keyOf([...jwt], {}, { claimsOf: () => claims })).toBe(key)
    expect(await keyOf([...jwt], {}, { claimsOf: async () => claims })).toBe(key)
  })
})
