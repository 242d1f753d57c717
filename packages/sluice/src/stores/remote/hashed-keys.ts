import { SluiceError, shown } from '../../core/errors.ts'
import type { AnyKey } from '../../core/key.ts'
import { sha256 } from '../../core/sha256.ts'
import { createRecent } from './recent.ts'

/**
 * The prefix of hashed keys. Keys from requests with this prefix are hashed again, so no client can
 * send one.
 */
const MARK = 'sluice:hash:'
const HASHED = /^sluice:hash:[\da-f]{32}$/

/** The most cached hashes, so that a busy key is hashed once. */
const MOST_KEYS = 10_000

/**
 * createKeyHash returns a function that replaces a key, or each value of its fields, by 128 bits of
 * a keyed SHA-256. From there on a key and its hash, as `entries` lists it, are one key.
 */
export function createKeyHash(secret: string): (key: AnyKey) => AnyKey {
  const known = createRecent<string>(MOST_KEYS)
  function hash(key: string): string {
    const made = known.get(key) ?? hashOf(key, secret)
    known.set(key, made)
    return made
  }

  return (key) => (typeof key === 'string' ? hash(key) : key.map((value) => value && hash(value)))
}

/**
 * Returns the hash of a key. A hash that `entries` has listed stays as it is, so that all verbs
 * accept it.
 */
function hashOf(key: string, secret: string): string {
  if (HASHED.test(key)) return key
  // Nested, against length extension: a hash must not reveal the hash of a longer key.
  return MARK + sha256(`${secret}\0${sha256(`${secret}\0${key}`)}`).slice(0, 32)
}

/** checkSecret throws unless `secret` is undefined or a string that is hard to guess. */
export function checkSecret(where: string, secret: unknown): void {
  if (secret === undefined || (typeof secret === 'string' && secret.length >= 16)) return
  const came = typeof secret === 'string' ? `${secret.length}` : shown(secret)
  throw new SluiceError(
    'SLUICE_OPTION',
    `${where}: hashKeys must be a secret of at least 16 characters, got ${came}. All nodes need the ` +
      'same: `openssl rand -hex 16`.',
  )
}
