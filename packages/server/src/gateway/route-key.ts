import type { IncomingMessage } from 'node:http'
import { apiKey, compositeKey } from 'sluice'
import type { KeyPart, RouteSettings } from '../settings.ts'
import { plainSecret } from './identity.ts'
import type { VerifiedTokens } from './verified-tokens.ts'

type Reader = (request: IncomingMessage) => string | undefined | Promise<string | undefined>

/** KeySources are the sources of keys besides headers; `tokens` is set if a key needs it. */
export interface KeySources {
  addressOf(request: IncomingMessage): string
  readonly tokens: VerifiedTokens | undefined
}

/**
 * routeKey reads the key of a client, part by part. The client's address replaces a part that is
 * missing, or whose token is invalid.
 */
export function routeKey({ key, name }: RouteSettings, sources: KeySources): Reader {
  const { addressOf } = sources
  const readers = key.map((part) => partReader(part, name, sources))
  if (readers.length === 1) {
    const [read] = readers
    return (request) => orElse(read(request), () => addressOf(request))
  }
  return (request) => {
    const parts = readers.map((read) => orElse(read(request), () => addressOf(request)))
    if (parts.some((part) => part instanceof Promise)) return Promise.all(parts).then(combined)
    return combined(parts as string[])
  }
}

function combined(parts: readonly string[]): string {
  const length = parts.reduce((sum, part) => sum + part.length + 8, 0)
  return length <= 1_024 ? compositeKey(...parts) : hashed(parts.join('\n'))
}

function orElse(value: ReturnType<Reader>, instead: () => string): string | Promise<string> {
  if (value instanceof Promise) return value.then((key) => key ?? instead())
  return value ?? instead()
}

/** Node computes the hash synchronously. */
const hashed = apiKey((secret: string) => secret) as (secret: string) => string

function partReader(part: KeyPart, route: string, { addressOf, tokens }: KeySources): Reader {
  if (!('name' in part)) {
    if (part.from === 'address') return addressOf
    if (part.from === 'route') return () => route
    return (request) => {
      const claims = tokens?.claimsOf(request)
      return claims instanceof Promise ? claims.then(subjectOf) : subjectOf(claims)
    }
  }
  const { name, from } = part
  return ({ headers }) => {
    const value = headers[name]
    if (typeof value !== 'string' || value === '') return undefined
    if (from === 'header') return readable(name, value)
    const secret = plainSecret(value)
    return secret === undefined ? undefined : hashed(secret)
  }
}

/** Claims may have any type. */
function subjectOf(claims: { readonly sub?: unknown } | undefined): string | undefined {
  const sub = claims?.sub
  return typeof sub === 'string' && sub !== '' ? readable('sub', sub) : undefined
}

/** Keys stay readable, for people and in configurations, unless they are very long. */
function readable(name: string, value: string): string {
  return value.length > 256 ? hashed(`${name}:${value}`) : `${name}:${value}`
}
