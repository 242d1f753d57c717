import { SluiceError, shown } from './errors.ts'

/** FieldKey is the values of a key's fields in their order; null for a field that is switched off. */
export type FieldKey = readonly (string | null)[]

/** AnyKey is a key in stores: a string, or the values of its fields. */
export type AnyKey = string | FieldKey

/** The longest key, in UTF-16 units. */
const LONGEST_KEY = 1_024

/** isKey tells whether `key` is a non-empty string of at most 1,024 UTF-16 units. */
export function isKey(key: unknown): key is string {
  return typeof key === 'string' && key.length > 0 && key.length <= LONGEST_KEY
}

/** checkKey throws `SLUICE_KEY` unless `key` is a valid key. `what` names it in the error. */
export function checkKey(key: unknown, what = 'a key'): asserts key is string {
  if (isKey(key)) return
  throw new SluiceError(
    'SLUICE_KEY',
    `${what} must be a string of 1 to ${LONGEST_KEY} UTF-16 units, got ${shown(key)}. ` +
      keyHint(key),
  )
}

function keyHint(key: unknown): string {
  if (typeof key === 'string' && key.length > 0) return 'Hash a longer identity first.'
  if (typeof key === 'number' || typeof key === 'bigint')
    return 'Turn it into a string: String(id).'
  if (shown(key) === 'an array') return 'Join parts with compositeKey().'
  if (shown(key) === 'an object') {
    return "Only rules with `by`, such as `by: 'user'`, count fields of an object."
  }
  return "Decide what a client without a key is called, such as 'anonymous'."
}

/**
 * compositeKey joins parts into one key, so that no two different lists give the same key: it puts
 * each part's length before the part. Numbers count as strings: `compositeKey('user', 42)` equals
 * `compositeKey('user', '42')`. Limiters refuse a result that is too long, and `rateLimit` hashes
 * it.
 */
export function compositeKey(...parts: (string | number | bigint | boolean)[]): string {
  if (parts.length === 0) {
    throw new SluiceError('SLUICE_KEY', 'compositeKey() needs at least one part.')
  }
  let key = ''
  for (const [i, part] of parts.entries()) {
    if (!['string', 'number', 'bigint', 'boolean'].includes(typeof part)) {
      const hint =
        part === undefined || part === null
          ? " Say what stands for it, such as `user ?? 'anonymous'`. Of a request, a body is there only " +
            'after it was parsed, and a user after the login was checked.'
          : ''
      throw new SluiceError(
        'SLUICE_KEY',
        `compositeKey: part ${i + 1} must be a string, number, bigint or boolean, got ${shown(part)}.${hint}`,
      )
    }
    const text = String(part)
    key += `${text.length}:${text}`
  }
  return key
}
