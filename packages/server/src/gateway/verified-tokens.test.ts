import { createHmac, generateKeyPairSync } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, SignJWT } from 'jose'
import { afterEach, describe, expect, it } from 'vitest'
import type { JwtSettings } from '../settings.ts'
import { createVerifiedTokens } from './verified-tokens.ts'

const none: JwtSettings = {
  jwks: '',
  secret: '',
  publicKey: '',
  issuer: '',
  audience: '',
  header: 'authorization',
}
const secret = 'a secret that is long enough for it'
const symmetric = new TextEncoder().encode(secret)
const pair = () => generateKeyPairSync('ec', { namedCurve: 'P-256' })
const asking = (token: string, header = 'authorization') =>
  ({
    headers: { [header]: header === 'authorization' ? `Bearer ${token}` : token },
  }) as unknown as IncomingMessage

const quiet = { onBadToken() {}, onError: expect.fail }

const closers: (() => void)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

describe('createVerifiedTokens', () => {
  it('accepts a token with a valid signature, and caches it until it expires', async () => {
    let nowMs = 1_000_000_000_000
    const tokens = createVerifiedTokens({ ...none, secret }, quiet, () => nowMs)
    const token = await new SignJWT({ sub: 'alice', exp: nowMs / 1_000 + 60 })
      .setProtectedHeader({ alg: 'HS256' })
      .sign(symmetric)
    expect(await tokens.claimsOf(asking(token))).toMatchObject({ sub: 'alice' })
    // Cached: the result is synchronous.
    expect(tokens.claimsOf(asking(token))).toMatchObject({ sub: 'alice' })
    nowMs += 59_999
    expect(tokens.claimsOf(asking(token))).toMatchObject({ sub: 'alice' })
    nowMs += 1
    expect(await tokens.claimsOf(asking(token))).toBeUndefined()
    expect(await tokens.claimsOf(asking(token))).toBeUndefined()
  })

  it('accepts no other token', async () => {
    const reasons: string[] = []
    const { publicKey, privateKey } = pair()
    const pem = publicKey.export({ type: 'spki', format: 'pem' }) as string
    const tokens = createVerifiedTokens(
      { ...none, publicKey: pem, issuer: 'https://me', audience: 'api' },
      { ...quiet, onBadToken: (reason) => reasons.push(reason) },
    )
    const sign = (claims: object, key: unknown = privateKey, alg = 'ES256') =>
      new SignJWT({ sub: 'alice', iss: 'https://me', aud: 'api', ...claims })
        .setProtectedHeader({ alg })
        .sign(key as never)
    const good = await sign({})
    expect(await tokens.claimsOf(asking(good))).toMatchObject({ sub: 'alice' })
    expect(await tokens.claimsOf(asking(good, 'x-token'))).toBeUndefined()
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const unsigned = `${part({ alg: 'none' })}.${part({ sub: 'mallory', iss: 'https://me', aud: 'api' })}.`
    const head = `${part({ alg: 'HS256' })}.${part({ sub: 'mallory', iss: 'https://me', aud: 'api' })}`
    // The public key used as an HMAC secret.
    const confused = `${head}.${createHmac('sha256', pem).update(head).digest('base64url')}`
    const bad = [
      await sign({}, pair().privateKey),
      await sign({ iss: 'https://other' }),
      await sign({ aud: 'other' }),
      await sign({ exp: 1 }),
      await sign({ nbf: 99_999_999_999 }),
      good.slice(0, -4),
      good.replace('.', '..'),
      unsigned,
      confused,
      '',
      'x'.repeat(10_000),
    ]
    const seen = await Promise.all(bad.map((token) => tokens.claimsOf(asking(token))))
    expect(seen).toEqual(bad.map(() => undefined))
    const told = [
      'algorithm',
      'claim aud',
      'claim iss',
      'claim nbf',
      'expired',
      'signature',
      'unreadable',
    ]
    expect([...new Set(reasons)].sort()).toEqual(told)
  })

  it('fetches keys, again for an unknown key, and keeps working when it cannot', async () => {
    const keys: object[] = []
    let status = 200
    let fetched = 0
    const server = createServer((_request, response) => {
      fetched += 1
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ keys }))
    }).listen(0, '127.0.0.1')
    closers.push(() => server.close())
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    const add = async (kid: string) => {
      const { publicKey, privateKey } = pair()
      keys.push({ ...(await exportJWK(publicKey)), kid, alg: 'ES256' })
      return new SignJWT({ sub: kid }).setProtectedHeader({ alg: 'ES256', kid }).sign(privateKey)
    }
    const complaints: string[] = []
    let nowMs = Date.now()
    const tokens = createVerifiedTokens(
      { ...none, jwks: `http://127.0.0.1:${port}/jwks`, header: 'x-token' },
      { ...quiet, onError: (message) => complaints.push(message) },
      () => nowMs,
    )
    const subjectOf = async (token: string) =>
      (await tokens.claimsOf(asking(token, 'x-token')))?.sub
    const first = await add('first')
    await expect.poll(() => subjectOf(first)).toBe('first')
    expect(fetched).toBe(1)
    const second = await add('second')
    expect(await subjectOf(second)).toBeUndefined()
    expect(fetched).toBe(1)
    nowMs += 10_000
    await expect.poll(() => subjectOf(second)).toBe('second')
    expect(fetched).toBe(2)
    status = 500
    nowMs += 600_000
    expect(await subjectOf(first)).toBe('first')
    await expect.poll(() => complaints.length).toBe(1)
    expect(complaints[0]).toContain('it answered with 500')
    expect(await subjectOf(second)).toBe('second')
    status = 200
    keys.push({ kty: 'x'.repeat(1_048_576) })
    nowMs += 600_000
    expect(await subjectOf(first)).toBe('first')
    await expect.poll(() => complaints.length).toBe(2)
    expect(complaints[1]).toContain('it is too large')
    // A token whose key was removed is not cached either.
    keys.pop()
    keys.shift()
    nowMs += 600_000
    await expect.poll(() => subjectOf(first)).toBeUndefined()
    expect(await subjectOf(second)).toBe('second')
    expect(fetched).toBe(5)
  })
})
