import { SluiceError, shown } from '../core/errors.ts'
import { usableKey } from '../core/usable-key.ts'
import type { KeyFields } from '../limiter/key-types.ts'
import type { AsyncLimiter, Limiter } from '../limiter/verbs.ts'
import type { AddressSource } from './client-address.ts'

/** RequestKey is the key of a request: an object if the rules have `by`, else a string. */
export type RequestKey = string | KeyFields

/** AnyLimiter is a limiter with any types of keys and costs. */
export type AnyLimiter = Limiter<never, never> | AsyncLimiter<never, never>

/** The field that is filled in from the request. */
const ADDRESS = 'address'

/** RequestKeys converts results of the option `key` to keys. */
export interface RequestKeys {
  read(given: unknown, source: AddressSource): RequestKey
  /** Returns the key if there is no option `key`. */
  ofAddress(source: AddressSource): RequestKey
}

/**
 * requestKeys creates the conversion for a limiter. `textOf` returns the text of a client's address.
 * Throws if the rules count fields other than the address, and there is no option `key`.
 */
export function requestKeys(
  limiter: AnyLimiter,
  hasKey: boolean,
  textOf: (source: AddressSource) => string,
): RequestKeys {
  const fields = fieldsOfKeys(limiter)
  if (!fields) {
    const read = (given: unknown, source: AddressSource) =>
      isMissing(given) ? textOf(source) : textKey(given, 'key')
    return { read, ofAddress: textOf }
  }
  const others = fields.filter((field) => field !== ADDRESS)
  if (!hasKey && others.length > 0) throw keyless(others)
  const hasAddress = fields.length > others.length

  function ofAddress(source: AddressSource): RequestKey {
    return hasAddress ? { [ADDRESS]: textOf(source) } : {}
  }

  /** Converts a field. Any value from a client counts; a missing one is a bug of the application. */
  function partOf(
    given: Record<string, unknown>,
    field: string,
    source: AddressSource,
  ): string | null {
    const value = given[field]
    if (value === undefined && field === ADDRESS) return textOf(source)
    if (value === undefined) throw lacking(field)
    return value === null ? value : textKey(value, `\`${field}\` of key`)
  }

  return {
    ofAddress,
    read(given, source) {
      if (isMissing(given) && others.length === 0) return ofAddress(source)
      if (shown(given) !== 'an object') throw unfit(fields, given)
      const parts = given as Record<string, unknown>
      const unknown = Object.keys(parts).find((name) => !fields.includes(name))
      if (unknown !== undefined) throw misspelt(unknown, fields)
      return Object.fromEntries(fields.map((field) => [field, partOf(parts, field, source)]))
    },
  }
}

/** Returns the fields of a limiter's keys except `global`; undefined if keys are strings. */
function fieldsOfKeys(limiter: AnyLimiter): readonly string[] | undefined {
  const fields = new Set<string>()
  const everything = {
    get(_: object, field: string | symbol) {
      if (typeof field === 'string') fields.add(field)
      return 'any'
    },
  }
  try {
    // `waiting` reads all fields of a key, and has no other effect.
    limiter.waiting(new Proxy({}, everything) as never)
  } catch {
    return undefined
  }
  return [...fields]
}

function isMissing(given: unknown): given is undefined | null {
  return given === undefined || given === null
}

/** Converts any value from a client to a key; anything else is a bug of the application. */
function textKey(given: unknown, what: string): string {
  try {
    return usableKey(given)
  } catch {
    const hint = typeof given === 'number' || typeof given === 'bigint' ? ' Write String(id).' : ''
    throw new SluiceError(
      'SLUICE_KEY',
      `rateLimit: ${what} must give a text, got ${shown(given)}.${hint}`,
    )
  }
}

function misspelt(name: string, fields: readonly string[]): SluiceError {
  return new SluiceError(
    'SLUICE_KEY',
    `rateLimit: key must give an object with ${listed(fields)}, got the field ${shown(name)}, which no ` +
      'rule counts.',
  )
}

function lacking(field: string): SluiceError {
  return new SluiceError(
    'SLUICE_KEY',
    `rateLimit: key must give a text for \`${field}\`, got undefined. What it reads must be set before ` +
      'rateLimit runs: parse bodies and check logins first. For clients that have none, give a name ' +
      "such as 'anonymous', or null to switch the rules of this field off.",
  )
}

function keyless(fields: readonly string[]): SluiceError {
  return new SluiceError(
    'SLUICE_OPTION',
    `rateLimit: rules count ${listed(fields)}, so give \`key\`, a function from a request to ` +
      `{ ${fields.join(', ')} }. Only \`address\` and \`global\` need none.`,
  )
}

function unfit(fields: readonly string[], given: unknown): SluiceError {
  return new SluiceError(
    'SLUICE_KEY',
    `rateLimit: key must give an object with ${listed(fields)}, got ${shown(given)}.`,
  )
}

function listed(fields: readonly string[]): string {
  return fields.length > 0 ? fields.map((field) => `\`${field}\``).join(', ') : 'no field'
}
