import { SluiceError, shown } from './errors.ts'

/** FieldKey is a key with fields, in their order: a text for each, or null where it has none. */
export type FieldKey = readonly (string | null)[]

/** AnyKey is a key as stores know it: a text, or a text for each field. */
export type AnyKey = string | FieldKey

/** The longest key, in UTF-16 units. */
const LONGEST_KEY = 1_024

/** isKey tells whether `key` is a non-empty string of at most 1,024 UTF-16 units. */
export function isKey(key: unknown): key is string {
  return typeof key === 'string' && key.length > 0 && key.length <= LONGEST_KEY
}

/** checkKey throws unless `key` is one; `what` names it in the error. */
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
 * compositeKey joins parts into one key so that no two different lists give the same one: each
 * part is preceded by its length. `compositeKey('user', 42)` and `compositeKey('user', '42')` are
 * the same list of texts. A limiter refuses a result that is too long, and `rateLimit` hashes it.
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
