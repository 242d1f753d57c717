import { checkKey, isKey } from './key.ts'
import { sha256 } from './sha256.ts'

/** The prefix of keys that replace others. A key that starts with it by itself is hashed, too. */
const MARK = 'sluice:'

/**
 * usableKey converts a value that an application reads from a request, and that the client may have
 * forged, to a valid key. So every request is counted, and no client can cause an error.
 *
 * A valid key stays as it is. An empty or over-long string, or one that starts with `sluice:`,
 * becomes `sluice:text:` and its SHA-256, so that it equals no other key. An array or a plain
 * object, such as a repeated query parameter, becomes `sluice:json:` and the SHA-256 of its JSON.
 * Anything else is a bug of the application and throws `SLUICE_KEY`.
 */
export function usableKey(key: unknown): string {
  const known = textKey(key)
  if (known !== undefined) return known
  checkKey(key)
  return key
}

/**
 * anyKey is `usableKey` for libraries that accept any value as a key. Other values count as their
 * text, so that all requests without a key are one client, `undefined`.
 */
export function anyKey(key: unknown): string {
  return textKey(key) ?? usableKey(String(key))
}

function textKey(key: unknown): string | undefined {
  if (isKey(key) && !key.startsWith(MARK)) return key
  if (typeof key === 'string') return `${MARK}text:${sha256(key)}`
  const json = jsonOf(key)
  return json === undefined ? undefined : `${MARK}json:${sha256(json)}`
}

/** Returns the JSON of an array or a plain object; undefined for values that no parser produces. */
function jsonOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  try {
    const prototype = Object.getPrototypeOf(value)
    const isPlain = prototype === Object.prototype || prototype === null
    return isPlain || Array.isArray(value) ? JSON.stringify(value) : undefined
  } catch (error) {
    // Only an attacker nests so deeply. All such values share one key.
    return error instanceof RangeError ? '' : undefined
  }
}
