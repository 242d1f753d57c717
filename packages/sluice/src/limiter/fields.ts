import { SluiceError, shown } from '../core/errors.ts'
import { type AnyKey, checkKey, type FieldKey, isKey } from '../core/key.ts'
import { fieldsIn, type Rule } from '../core/rule.ts'

/** The field whose rules count all calls together. It is not part of the key. */
const GLOBAL = 'global'

/** Fields are the fields of a limiter's keys that its rules count. */
export interface Fields {
  /** In the order in which rules name them. */
  readonly names: readonly string[]
  /** Checks and reads a whole key, each field once. */
  read(key: unknown): FieldKey
  /** Checks and reads a part of a key with at least one field. */
  readPart(key: unknown): FieldKey
}

/** shownKey returns a key as `entries` lists it. For keys with fields, that is the non-null field. */
export function shownKey(key: AnyKey, fields: Fields | undefined) {
  if (typeof key === 'string') return { key }
  const field = key.findIndex((value) => value !== null)
  return { by: fields!.names[field], key: key[field]! }
}

/** tierKeyOf returns the part of a listed key that may have a tier. */
export function tierKeyOf(key: AnyKey): string {
  return typeof key === 'string' ? key : (key.find((value) => value !== null) ?? '')
}

/** fieldsOf returns the fields that rules count; undefined if keys are strings. */
export function fieldsOf(rules: readonly Rule[]): Fields | undefined {
  const names = fieldsIn(rules)
  if (names.length === 0) return undefined
  // A rule without state counts nothing.
  const whole = rules.find((rule) => rule.by === undefined && rule.algorithm.cells(rule) > 0)
  if (whole) throw mixed(whole, names[0])
  return createFields(names)
}

function createFields(names: readonly string[]): Fields {
  const own = names.filter((name) => name !== GLOBAL)

  function check(key: unknown): asserts key is Record<string, unknown> {
    if (typeof key !== 'object' || key === null || Array.isArray(key)) {
      throw wrong(`must be an object with ${listed(own)}, got ${shown(key)}`)
    }
    for (const name in key) {
      if (!own.includes(name)) throw wrong(`has no field ${shown(name)}; it has ${listed(own)}`)
    }
  }

  function readField(key: Record<string, unknown>, name: string): string | null {
    const value = key[name]
    if (value === undefined) {
      throw wrong(`lacks the field ${shown(name)}. To switch its rules off for a call, pass null`)
    }
    // The text is only made for an error: this is the hot path.
    if (value !== null && !isKey(value)) checkKey(value, `the field ${shown(name)} of a key`)
    return value
  }

  return {
    names,
    read(key) {
      check(key)
      const read: (string | null)[] = []
      let isAny = own.length === 0
      for (const name of names) {
        const value = name === GLOBAL ? GLOBAL : readField(key, name)
        if (value !== null && name !== GLOBAL) isAny = true
        read.push(value)
      }
      if (isAny) return read
      throw wrong('must have a field that is not null')
    },
    readPart(key) {
      check(key)
      const read = names.map((name) => (name in key ? readField(key, name) : null))
      if (own.length === 0) return names.map(() => GLOBAL)
      if (read.some((value) => value !== null)) return read
      throw wrong(`must have at least one of ${listed(own)}`)
    },
  }
}

function listed(names: readonly string[]): string {
  return names.length > 0 ? names.map((name) => `\`${name}\``).join(', ') : 'no field'
}

function wrong(what: string): SluiceError {
  return new SluiceError('SLUICE_KEY', `a key of this limiter ${what}.`)
}

function mixed({ name }: Rule, field: string): SluiceError {
  return new SluiceError(
    'SLUICE_OPTION',
    `rule "${name}" has no \`by\`, but others have. All rules of a limiter have it, or none: the ` +
      `key is an object such as { ${field === GLOBAL ? 'user' : field}: 'alice' } then, or a text.`,
  )
}
