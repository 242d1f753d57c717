import { SluiceError, shown } from '../core/errors.ts'
import { compositeKey } from '../core/key.ts'
import { after, type Later } from '../core/later.ts'
import { addressText, parseAddress } from './address.ts'

/**
 * KeyOf is the `key` option of `rateLimit`: returns the key, or undefined for the client's address.
 */
export type KeyOf<Request> = (request: Request) => Later<string | undefined>

/**
 * apiKey derives keys from API keys and other secrets: `key: apiKey((request) =>
 * request.get('x-api-key'))`. It keeps only their hashes, so secrets appear in no store, log or
 * listing. Without a secret the client's address counts.
 *
 * Clients can forge secrets, and each secret has its own limit: return only verified secrets, and
 * undefined for others.
 */
export function apiKey<Request>(
  secretOf: (request: Request) => Later<string | undefined | null>,
): KeyOf<Request> {
  checkReader('apiKey', secretOf, "request.headers['x-api-key']")
  const keyOf = (secret: string | undefined | null) => {
    if (typeof secret !== 'string' || secret === '') return undefined
    return after(hashOf(secret), (hash) => `key:${hash}`)
  }
  return (request) => after(secretOf(request), keyOf)
}

/**
 * addressKey returns the key that `rateLimit` uses for an address:
 * `'192.0.2.1'`, and for IPv6 the network of its first `ipv6Bits` bits (64), such as
 * `'2001:db8:0:7:0:0:0:0/64'`. undefined if the text is not an address.
 */
export function addressKey(text: string, ipv6Bits = 64): string | undefined {
  const address = parseAddress(text)
  return address && addressText(address, ipv6Bits)
}

/** Claims are the claims of a verified JSON Web Token. */
export interface Claims {
  /** The issuer of the token. */
  readonly iss?: unknown
  /** The subject of the token. */
  readonly sub?: unknown
}

/**
 * jwtSubject derives keys from the subject and issuer of tokens: `key: jwtSubject((request) =>
 * request.auth?.payload)`. It verifies nothing: return only claims of tokens whose signature has
 * been verified, and undefined for others. Without a subject the client's address counts.
 */
export function jwtSubject<Request>(
  claimsOf: (request: Request) => Later<Claims | undefined | null>,
): KeyOf<Request> {
  checkReader('jwtSubject', claimsOf, 'request.auth?.payload')
  const keyOf = (claims: Claims | undefined | null) => {
    if (typeof claims === 'string') {
      throw new SluiceError(
        'SLUICE_OPTION',
        'jwtSubject: the function must give the claims of a verified token, got a text. Verify the token first.',
      )
    }
    const { iss, sub } = claims ?? {}
    if (typeof sub !== 'string' || sub === '') return undefined
    const issuer = typeof iss === 'string' ? iss : ''
    if (issuer.length + sub.length <= LONGEST_PLAIN) return `sub:${compositeKey(issuer, sub)}`
    return after(hashOf(`${issuer.length}:${issuer}${sub}`), (hash) => `sub#${hash}`)
  }
  return (request) => after(claimsOf(request), keyOf)
}

function checkReader(where: string, read: unknown, example: string): void {
  if (typeof read === 'function') return
  throw new SluiceError(
    'SLUICE_OPTION',
    `${where} must be given a function of the request, got ${shown(read)}. Write ` +
      `${where}((request) => ${example}).`,
  )
}

/** Longer subjects and issuers are hashed. */
const LONGEST_PLAIN = 256

/**
 * The part of Node's crypto that is used. Other platforms have only Web Crypto, which is
 * asynchronous.
 */
interface NodeCrypto {
  createHash(name: 'sha256'): { update(text: string): { digest(as: 'base64url'): string } }
}

interface NodeProcess {
  getBuiltinModule?(name: 'node:crypto'): NodeCrypto | undefined
}

const node = (globalThis as { process?: NodeProcess }).process?.getBuiltinModule?.('node:crypto')

/** Returns the SHA-256 as base64url, synchronously if the platform can. */
const hashOf: (text: string) => Later<string> = node
  ? (text) => node.createHash('sha256').update(text).digest('base64url')
  : hashLater

/** hashLater returns the SHA-256 as base64url by Web Crypto. */
export async function hashLater(text: string): Promise<string> {
  const bytes = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return btoa(String.fromCharCode(...new Uint8Array(bytes)))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
}
