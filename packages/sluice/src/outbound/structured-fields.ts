/** BareItem is a value of RFC 9651. The contents of inner lists are dropped. */
export interface BareItem {
  readonly kind:
    | 'integer'
    | 'decimal'
    | 'string'
    | 'token'
    | 'bytes'
    | 'boolean'
    | 'date'
    | 'display'
    | 'inner-list'
  /** A number for integers, decimals and dates, a boolean for booleans, else text. */
  readonly value: number | string | boolean
}

/** FieldItem is a member of a list or a dictionary. The last of repeated parameters counts. */
export interface FieldItem extends BareItem {
  readonly parameters: ReadonlyMap<string, BareItem>
}

/** parseList parses a List of RFC 9651; undefined if any part is malformed. */
export function parseList(text: string): readonly FieldItem[] | undefined {
  return parse(text, (scanner) => {
    const items: FieldItem[] = []
    members(scanner, () => void items.push(member(scanner)))
    return items
  })
}

/** parseDictionary parses a Dictionary of RFC 9651. The last of repeated keys counts. */
export function parseDictionary(text: string): ReadonlyMap<string, FieldItem> | undefined {
  return parse(text, (scanner) => {
    const items = new Map<string, FieldItem>()
    members(scanner, () => {
      const key = scanner.take(KEY)
      items.set(key, scanner.skip('=') ? member(scanner) : { ...TRUE, ...parametersOf(scanner) })
    })
    return items
  })
}

const KEY = /[a-z*][a-z0-9_.*-]*/y
const SPACES = / */y
const OPTIONAL_SPACE = /[ \t]*/y
const NUMBER = /-?\d+(?:\.\d*)?/y
const INTEGER = /^-?\d{1,15}$/
const DECIMAL = /^-?\d{1,12}\.\d{1,3}$/
const TOKEN = /[A-Za-z*][A-Za-z0-9:/!#$%&'*+.^_`|~-]*/y
const PLAIN = /[\x20\x21\x23-\x5b\x5d-\x7e]*/y
const PLAIN_DISPLAY = /[\x20\x21\x23\x24\x26-\x7e]*/y
const HEX = /[0-9a-f]{2}/y
const BASE64 = /[A-Za-z0-9+/=]*/y
const DATE = /-?\d{1,15}/y

const TRUE: BareItem = { kind: 'boolean', value: true }

/** Scanner reads a text once. It throws `MALFORMED` at an unexpected character. */
interface Scanner {
  isAtEnd(): boolean
  /** Returns the next character, or ''. */
  next(): string
  /** Skips this character if it is next. */
  skip(character: string): boolean
  /** Consumes and returns the match of a sticky pattern, which must match. */
  take(pattern: RegExp): string
}

const MALFORMED = new Error('malformed structured field')

function parse<T>(text: string, read: (scanner: Scanner) => T): T | undefined {
  try {
    return read(scannerOf(text))
  } catch (error) {
    if (error === MALFORMED) return undefined
    throw error
  }
}

function scannerOf(text: string): Scanner {
  let at = 0
  return {
    isAtEnd: () => at >= text.length,
    next: () => text.charAt(at),
    skip(character) {
      if (text.charAt(at) !== character) return false
      at += 1
      return true
    },
    take(pattern) {
      pattern.lastIndex = at
      const found = pattern.exec(text)?.[0]
      if (found === undefined) throw MALFORMED
      at += found.length
      return found
    },
  }
}

function members(scanner: Scanner, readOne: () => void): void {
  scanner.take(SPACES)
  while (!scanner.isAtEnd()) {
    readOne()
    scanner.take(OPTIONAL_SPACE)
    if (scanner.isAtEnd()) return
    expect(scanner, ',')
    scanner.take(OPTIONAL_SPACE)
    if (scanner.isAtEnd()) throw MALFORMED
  }
}

function expect(scanner: Scanner, character: string): void {
  if (!scanner.skip(character)) throw MALFORMED
}

function member(scanner: Scanner): FieldItem {
  if (!scanner.skip('(')) return itemOf(scanner)
  for (;;) {
    scanner.take(SPACES)
    if (scanner.skip(')')) break
    itemOf(scanner)
    if (scanner.next() !== ' ' && scanner.next() !== ')') throw MALFORMED
  }
  return { kind: 'inner-list', value: '', ...parametersOf(scanner) }
}

function itemOf(scanner: Scanner): FieldItem {
  return { ...bareItem(scanner), ...parametersOf(scanner) }
}

function parametersOf(scanner: Scanner): Pick<FieldItem, 'parameters'> {
  const parameters = new Map<string, BareItem>()
  while (scanner.skip(';')) {
    scanner.take(SPACES)
    const key = scanner.take(KEY)
    parameters.set(key, scanner.skip('=') ? bareItem(scanner) : TRUE)
  }
  return { parameters }
}

function bareItem(scanner: Scanner): BareItem {
  if (/[-0-9]/.test(scanner.next())) return numberOf(scanner.take(NUMBER))
  if (scanner.skip('"')) return { kind: 'string', value: stringOf(scanner) }
  if (scanner.skip('?')) {
    if (scanner.skip('1')) return TRUE
    expect(scanner, '0')
    return { kind: 'boolean', value: false }
  }
  if (scanner.skip(':')) return { kind: 'bytes', value: bytesOf(scanner) }
  if (scanner.skip('@')) return { kind: 'date', value: Number(scanner.take(DATE)) }
  if (scanner.skip('%')) return { kind: 'display', value: displayOf(scanner) }
  return { kind: 'token', value: scanner.take(TOKEN) }
}

function numberOf(text: string): BareItem {
  if (INTEGER.test(text)) return { kind: 'integer', value: Number(text) }
  if (DECIMAL.test(text)) return { kind: 'decimal', value: Number(text) }
  throw MALFORMED
}

function stringOf(scanner: Scanner): string {
  let value = scanner.take(PLAIN)
  while (!scanner.skip('"')) {
    expect(scanner, '\\')
    if (scanner.skip('"')) value += '"'
    else {
      expect(scanner, '\\')
      value += '\\'
    }
    value += scanner.take(PLAIN)
  }
  return value
}

function bytesOf(scanner: Scanner): string {
  const base64 = scanner.take(BASE64)
  expect(scanner, ':')
  try {
    return atob(base64)
  } catch {
    throw MALFORMED
  }
}

function displayOf(scanner: Scanner): string {
  expect(scanner, '"')
  let escaped = scanner.take(PLAIN_DISPLAY)
  while (!scanner.skip('"')) {
    expect(scanner, '%')
    escaped += `%${scanner.take(HEX)}${scanner.take(PLAIN_DISPLAY)}`
  }
  try {
    return decodeURIComponent(escaped)
  } catch {
    throw MALFORMED
  }
}
