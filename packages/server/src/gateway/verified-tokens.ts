import { createPublicKey, createSecretKey, type KeyObject } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import {
  createLocalJWKSet,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyOptions,
  jwtVerify,
} from 'jose'
import type { JwtSettings } from '../settings.ts'

/** TokenEvents are called when a token is invalid or keys cannot be fetched. */
export interface TokenEvents {
  /** A token is invalid; `reason` is a few words. */
  onBadToken(reason: string): void
  /** The keys cannot be fetched. */
  onError(message: string): void
}

/** VerifiedTokens reads JSON Web Tokens, and accepts only those with a valid signature. */
export interface VerifiedTokens {
  /** The claims of a request's token; undefined if it is missing or invalid. */
  claimsOf(request: IncomingMessage): JWTPayload | undefined | Promise<JWTPayload | undefined>
}

type KeySource = KeyObject | ReturnType<typeof createLocalJWKSet>

const SYMMETRIC = ['HS256', 'HS384', 'HS512']
const ASYMMETRIC = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
]

/** Valid tokens in the cache are not verified again. */
const MOST_REMEMBERED = 10_000
const REFRESH_MS = 600_000
/** The shortest time between two fetches because of tokens with an unknown key. */
const COOLDOWN_MS = 10_000
const FETCH_TIMEOUT_MS = 5_000
const LARGEST_SET = 1_048_576

/**
 * createVerifiedTokens takes tokens from `Authorization: Bearer`, or the header that `settings`
 * names. The keys of a `jwks` URL are fetched in the background, every ten minutes and when a token
 * names an unknown one: no request waits for them. Until they are fetched, no token is valid.
 */
export function createVerifiedTokens(
  settings: JwtSettings,
  { onBadToken, onError }: TokenEvents,
  nowMs: () => number = Date.now,
): VerifiedTokens {
  const { header, issuer, audience, jwks } = settings
  const options: JWTVerifyOptions = {
    algorithms: settings.secret === '' ? ASYMMETRIC : SYMMETRIC,
    ...(issuer === '' ? {} : { issuer }),
    ...(audience === '' ? {} : { audience }),
  }
  const remembered = new Map<string, JWTPayload>()
  let keys: KeySource | undefined = fixedKey(settings)
  let isFetching = false
  let triedMs = Number.NEGATIVE_INFINITY

  async function fetchKeys(): Promise<void> {
    isFetching = true
    triedMs = nowMs()
    try {
      const response = await fetch(jwks, { signal: AbortSignal.timeout(FETCH_TIMEOUT_MS) })
      if (!response.ok) throw new Error(`it answered with ${response.status}`)
      keys = createLocalJWKSet(JSON.parse(await textOf(response)) as JSONWebKeySet)
      // The cache must not keep tokens whose key has been removed.
      remembered.clear()
    } catch (error) {
      onError(`cannot fetch the keys of tokens from ${jwks}: ${(error as Error).message}`)
    } finally {
      isFetching = false
    }
  }

  function refresh(afterMs: number): void {
    if (jwks !== '' && !isFetching && nowMs() - triedMs >= afterMs) void fetchKeys()
  }

  async function verify(token: string): Promise<JWTPayload | undefined> {
    const used = keys
    if (!used) {
      onBadToken('no keys')
      return undefined
    }
    try {
      const currentDate = new Date(nowMs())
      const { payload } = await jwtVerify(token, used as KeyObject, { ...options, currentDate })
      // A token that was verified with replaced keys is not cached.
      if (used !== keys) return undefined
      if (remembered.size >= MOST_REMEMBERED) remembered.delete(remembered.keys().next().value!)
      remembered.set(token, payload)
      return payload
    } catch (error) {
      const { code = '', claim } = error as { code?: string; claim?: string }
      if (code === 'ERR_JWKS_NO_MATCHING_KEY') refresh(COOLDOWN_MS)
      onBadToken(
        code === 'ERR_JWT_CLAIM_VALIDATION_FAILED'
          ? `claim ${claim}`
          : (reasons[code] ?? 'unreadable'),
      )
      return undefined
    }
  }

  refresh(0)
  return {
    claimsOf({ headers }) {
      const token = tokenOf(headers[header], header)
      if (token === undefined) return undefined
      refresh(keys ? REFRESH_MS : COOLDOWN_MS)
      const known = remembered.get(token)
      if (!known) return verify(token)
      if (known.exp === undefined || known.exp * 1_000 > nowMs()) return known
      remembered.delete(token)
      onBadToken('expired')
      return undefined
    },
  }
}

const reasons: Readonly<Record<string, string>> = {
  ERR_JWT_EXPIRED: 'expired',
  ERR_JWKS_NO_MATCHING_KEY: 'unknown key',
  ERR_JWKS_MULTIPLE_MATCHING_KEYS: 'no kid',
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED: 'signature',
  ERR_JOSE_ALG_NOT_ALLOWED: 'algorithm',
}

/** Reads a key set, and stops when it is larger than any real one. */
async function textOf(response: Response): Promise<string> {
  let text = ''
  for await (const part of response.body!.pipeThrough(new TextDecoderStream())) {
    text += part
    if (text.length > LARGEST_SET) throw new Error('it is too large')
  }
  return text
}

function fixedKey({ secret, publicKey }: JwtSettings): KeyObject | undefined {
  if (secret !== '') return createSecretKey(Buffer.from(secret))
  return publicKey === '' ? undefined : createPublicKey(publicKey)
}

function tokenOf(value: string | string[] | undefined, header: string): string | undefined {
  if (typeof value !== 'string') return undefined
  if (header !== 'authorization') return value
  return /^Bearer +([\w.-]+)$/i.exec(value)?.[1]
}
