import { checkKey, isKey } from './key.ts'
import { sha256 } from './sha256.ts'

/** What the keys begin with that stand for others. A key that begins so by itself is hashed, too. */
const MARK = 'sluice:'

/**
 * usableKey makes a key of what an application reads from a request, which a client may have made
 * up: the answer always counts, and is never an error that the client can cause.
 *
 * A key is itself. An empty or too long text, and one that begins with `sluice:`, is
 * `sluice:text:` and its SHA-256, so that it meets no other key. An array or a plain object, such as
 * a query parameter that came twice, is `sluice:json:` and the SHA-256 of its JSON. Anything else is
 * a mistake of the application: `SLUICE_KEY`.
 */
export function usableKey(key: unknown): string {
  const known = textKey(key)
  if (known !== undefined) return known
  checkKey(key)
  return key
}

/**
 * anyKey is `usableKey` for libraries that take any value for a key: what would be a mistake counts
 * as its text, so that all requests without a key are one client, `undefined`.
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

/** JSON of an array or a plain object; undefined for what no parser makes of a request. */
function jsonOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  try {
    const prototype = Object.getPrototypeOf(value)
    const isPlain = prototype === Object.prototype || prototype === null
    return isPlain || Array.isArray(value) ? JSON.stringify(value) : undefined
  } catch (error) {
    // Only a client nests so deeply, and all that do are one.
    return error instanceof RangeError ? '' : undefined
  }
}
