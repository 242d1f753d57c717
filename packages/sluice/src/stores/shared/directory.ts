import { SluiceError } from '../../errors.ts'
import type { Column } from '../layout.ts'
import { MOST_PLACES } from './buckets.ts'
import { regionOf } from './region.ts'
import type { SharedPlace } from './shared-table.ts'

const MAGIC = 0x51_1c_e0_01

/** Words of the head: what it is, the secret, maxKeys, where texts end, and a word per table. */
const SECRET_AT = 1
const MAX_KEYS_AT = 3
const TEXTS_END_AT = 4
const TABLES_AT = 8
const MOST_TABLES = 64
const TEXTS_AT = TABLES_AT + MOST_TABLES

/** HEAD_BYTES is what a buffer has before its first table. */
export const HEAD_BYTES = 32_768

/** Claimed is a table in the buffer and what it was claimed for. */
export interface Claimed extends SharedPlace {
  /** Its rules' names and algorithms, as a text. */
  readonly rules: string
}

/**
 * Directory is the head of a buffer: which tables are in it, in the order in which they were
 * claimed. A table's place follows from those before it, so that writing one word claims it.
 */
export interface Directory {
  /** The table of that name; claims one for `rules`, with rows of `columns`, if there is none. */
  claim(name: string, rules: string, columns: readonly Column[]): Claimed
}

interface Entry {
  readonly name: string
  readonly rules: string
  readonly columns: readonly Column[]
}

/** formatBuffer makes a buffer that is all 0 ready for tables of so many keys. */
export function formatBuffer(buffer: SharedArrayBuffer, maxKeys: number, secret: Int32Array): void {
  const words = new Int32Array(buffer)
  words.set(secret, SECRET_AT)
  words[MAX_KEYS_AT] = maxKeys
  words[TEXTS_END_AT] = TEXTS_AT
  words[0] = MAGIC
}

/** isFormatted tells whether `buffer` was made ready by this version of the library. */
export function isFormatted(buffer: unknown): buffer is SharedArrayBuffer {
  return (
    buffer instanceof SharedArrayBuffer &&
    buffer.byteLength >= HEAD_BYTES &&
    new Int32Array(buffer, 0, 1)[0] === MAGIC
  )
}

export function openDirectory(buffer: SharedArrayBuffer): Directory {
  const words = new Int32Array(buffer, 0, HEAD_BYTES / 4)
  const secret = words.slice(SECRET_AT, SECRET_AT + 2)
  const maxKeys = words[MAX_KEYS_AT]

  function entryAt(at: number): Entry {
    const bytes = new Uint8Array(buffer, 4 * (at + 1), words[at]).slice()
    return JSON.parse(new TextDecoder().decode(bytes))
  }

  /** Writes a text where no other is, and tells where. */
  function writeEntry(entry: Entry): number {
    const bytes = new TextEncoder().encode(JSON.stringify(entry))
    const length = 1 + Math.ceil(bytes.length / 4)
    const at = Atomics.add(words, TEXTS_END_AT, length)
    if (at + length > words.length) {
      throw new SluiceError(
        'SLUICE_STORE_FULL',
        'the directory of this shared memory has no room for the names of another limiter.',
      )
    }
    words[at] = bytes.length
    new Uint8Array(buffer, 4 * (at + 1), bytes.length).set(bytes)
    return at
  }

  function place(entry: Entry, firstByte: number): Claimed {
    const region = regionOf(maxKeys, entry.columns)
    makeRoom(buffer, entry.name, firstByte + region.bytes)
    return {
      rules: entry.rules,
      region,
      secret,
      words: new Int32Array(buffer, firstByte, region.bytes / 4),
      cells: new Float64Array(buffer, firstByte, region.bytes / 8),
    }
  }

  return {
    claim(name, rules, columns) {
      const wanted = { name, rules, columns }
      let firstByte = HEAD_BYTES
      let written = 0
      for (let i = 0; i < MOST_TABLES; i += 1) {
        let at = Atomics.load(words, TABLES_AT + i)
        if (at === 0) {
          const { bytes, places } = regionOf(maxKeys, columns)
          checkRoom(buffer, name, firstByte + bytes, places)
          written ||= writeEntry(wanted)
          at = Atomics.compareExchange(words, TABLES_AT + i, 0, written) || written
        }
        const entry = entryAt(at)
        if (entry.name === name) return place(entry, firstByte)
        firstByte += regionOf(maxKeys, entry.columns).bytes
      }
      throw new SluiceError(
        'SLUICE_STORE_FULL',
        `shared memory has room for ${MOST_TABLES} limiters. Use another store for "${name}".`,
      )
    },
  }
}

function checkRoom(buffer: SharedArrayBuffer, name: string, bytes: number, places: number): void {
  if (bytes <= buffer.maxByteLength && places <= MOST_PLACES) return
  throw new SluiceError(
    'SLUICE_STORE_FULL',
    `with the limiter "${name}" shared memory needs ${bytes.toLocaleString('en')} bytes, but ` +
      `maxBytes is ${buffer.maxByteLength.toLocaleString('en')}. Raise maxBytes, or lower maxKeys.`,
  )
}

/** The buffer grows with its tables. Another thread may be doing the same. */
function makeRoom(buffer: SharedArrayBuffer, name: string, bytes: number): void {
  while (buffer.byteLength < bytes) {
    try {
      buffer.grow(bytes)
    } catch (cause) {
      if (buffer.byteLength >= bytes) return
      throw new SluiceError(
        'SLUICE_STORE_FULL',
        `the system did not give the ${bytes.toLocaleString('en')} bytes of shared memory that ` +
          `the limiter "${name}" needs.`,
        { cause },
      )
    }
  }
}
