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

/** TokenEvents are told what goes wrong. */
export interface TokenEvents {
  /** A token that is not good, and why, in a few words. */
  onBadToken(reason: string): void
  /** Keys that cannot be fetched. */
  onError(message: string): void
}

/** VerifiedTokens reads JSON Web Tokens, and believes only those whose signature is right. */
export interface VerifiedTokens {
  /** The claims of a request's token; undefined without one, or with one that is not good. */
  claimsOf(request: IncomingMessage): JWTPayload | undefined | Promise<JWTPayload | undefined>
}

type KeySource = KeyObject | ReturnType<typeof createLocalJWKSet>

const SYMMETRIC = ['HS256', 'HS384', 'HS512']
const ASYMMETRIC = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
]

/** Tokens that were good are not verified again while they are remembered. */
const MOST_REMEMBERED = 10_000
const REFRESH_MS = 600_000
/** So often at most keys are fetched because a token names one that is not known. */
const COOLDOWN_MS = 10_000
const FETCH_TIMEOUT_MS = 5_000
const LARGEST_SET = 1_048_576

/**
 * createVerifiedTokens takes tokens from `Authorization: Bearer`, or the header that `settings`
 * names. Keys of a `jwks` address are fetched in the background, every ten minutes and when a token
 * names an unknown one: no request waits for them. Until they are there, no token is good.
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
      // Who has been left out of the new keys must not be remembered.
      remembered.clear()
    } catch (error) {
      onError(`the keys of tokens cannot be fetched from ${jwks}: ${(error as Error).message}`)
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
      // Who was verified by keys that have gone meanwhile is not remembered.
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

/** A set of keys is small; whoever sends more is not asked on. */
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
