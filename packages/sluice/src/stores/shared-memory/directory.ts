import { SluiceError } from '../../core/errors.ts'
import type { Column } from '../../rows/layout.ts'
import { MOST_PLACES } from './buckets.ts'
import { regionOf } from './region.ts'
import type { SharedPlace } from './shared-table.ts'

const MAGIC = 0x51_1c_e0_01

/** Words of the head: magic number, secret, maxKeys, end of the texts, and one word per table. */
const SECRET_AT = 1
const MAX_KEYS_AT = 3
const TEXTS_END_AT = 4
const TABLES_AT = 8
const MOST_TABLES = 64
const TEXTS_AT = TABLES_AT + MOST_TABLES

/** Word offsets have 31 bits. */
const MOST_BYTES = 4 * 2 ** 31

/** HEAD_BYTES is the size of a buffer's head, before its first table. */
export const HEAD_BYTES = 32_768

/** ClaimedRule is the names of a rule and its algorithm, and how many cells it has in a row. */
export type ClaimedRule = readonly [name: string, algorithm: string, cells: number]

/** Claimed is a table in the buffer, and the rules for which it was claimed. */
export interface Claimed extends SharedPlace {
  readonly rules: readonly ClaimedRule[]
}

/**
 * Directory is the head of a buffer. It lists the tables in the order in which they were claimed. A
 * table's offset follows from the tables before it, so writing one word claims a table atomically.
 */
export interface Directory {
  /** Returns the table of that name. Claims one for these rules if there is none. */
  claim(name: string, rules: readonly ClaimedRule[]): Claimed
}

type Entry = readonly [name: string, rules: readonly ClaimedRule[]]

/** formatBuffer writes the head of a zeroed buffer, for tables of `maxKeys` keys. */
export function formatBuffer(buffer: SharedArrayBuffer, maxKeys: number, secret: Int32Array): void {
  const words = new Int32Array(buffer)
  words.set(secret, SECRET_AT)
  words[MAX_KEYS_AT] = maxKeys
  words[TEXTS_END_AT] = TEXTS_AT
  words[0] = MAGIC
}

/** isFormatted tells whether this version of the library has formatted `buffer`. */
export function isFormatted(buffer: unknown): buffer is SharedArrayBuffer {
  return (
    buffer instanceof SharedArrayBuffer &&
    buffer.byteLength >= HEAD_BYTES &&
    new Int32Array(buffer, 0, 1)[0] === MAGIC
  )
}

/** openDirectory opens the directory of a formatted buffer. */
export function openDirectory(buffer: SharedArrayBuffer): Directory {
  const words = new Int32Array(buffer, 0, HEAD_BYTES / 4)
  const secret = words.slice(SECRET_AT, SECRET_AT + 2)
  const maxKeys = words[MAX_KEYS_AT]

  function entryAt(at: number): Entry {
    const bytes = new Uint8Array(buffer, 4 * (at + 1), words[at]).slice()
    return JSON.parse(new TextDecoder().decode(bytes))
  }

  /** Writes a text into free space, and returns its offset. */
  function writeEntry(entry: Entry): number {
    const bytes = new TextEncoder().encode(JSON.stringify(entry))
    const length = 1 + Math.ceil(bytes.length / 4)
    const at = takeText(length)
    words[at] = bytes.length
    new Uint8Array(buffer, 4 * (at + 1), bytes.length).set(bytes)
    return at
  }

  function takeText(length: number): number {
    for (;;) {
      const at = Atomics.load(words, TEXTS_END_AT)
      if (at + length > words.length) {
        throw new SluiceError(
          'SLUICE_STORE_FULL',
          'the directory of this shared memory has no room for the names of another limiter.',
        )
      }
      if (Atomics.compareExchange(words, TEXTS_END_AT, at, at + length) === at) return at
    }
  }

  function place([name, rules]: Entry, firstByte: number): Claimed {
    const region = regionOf(maxKeys, columnsOf(rules))
    makeRoom(buffer, name, firstByte + region.bytes)
    return {
      rules,
      region,
      secret,
      words: new Int32Array(buffer, firstByte, region.bytes / 4),
      cells: new Float64Array(buffer, firstByte, region.bytes / 8),
    }
  }

  return {
    claim(name, rules) {
      let firstByte = HEAD_BYTES
      let written = 0
      for (let i = 0; i < MOST_TABLES; i += 1) {
        let at = Atomics.load(words, TABLES_AT + i)
        if (at === 0) {
          const { bytes, places } = regionOf(maxKeys, columnsOf(rules))
          checkRoom(buffer, name, firstByte, bytes, places)
          written ||= writeEntry([name, rules])
          at = Atomics.compareExchange(words, TABLES_AT + i, 0, written) || written
        }
        const entry = entryAt(at)
        if (entry[0] === name) return place(entry, firstByte)
        firstByte += regionOf(maxKeys, columnsOf(entry[1])).bytes
      }
      throw new SluiceError(
        'SLUICE_STORE_FULL',
        `shared memory has room for ${MOST_TABLES} limiters. Use another store for "${name}".`,
      )
    },
  }
}

/** Returns the columns of a row. Rules without state have none. */
function columnsOf(rules: readonly ClaimedRule[]): Column[] {
  let at = 0
  return rules
    .filter(([, , cells]) => cells > 0)
    .map(([name, algorithm, cells]) => {
      at += cells
      return { name, algorithm, grows: false, cells, at: at - cells }
    })
}

function checkRoom(
  buffer: SharedArrayBuffer,
  name: string,
  firstByte: number,
  bytes: number,
  places: number,
): void {
  if (bytes > MOST_BYTES || places > MOST_PLACES) {
    throw new SluiceError(
      'SLUICE_STORE_FULL',
      `the limiter "${name}" needs ${bytes.toLocaleString('en')} bytes of shared memory, more than ` +
        'can be addressed. Lower maxKeys.',
    )
  }
  if (firstByte + bytes <= buffer.maxByteLength) return
  throw new SluiceError(
    'SLUICE_STORE_FULL',
    `with the limiter "${name}" shared memory needs ${(firstByte + bytes).toLocaleString('en')} ` +
      `bytes, but maxBytes is ${buffer.maxByteLength.toLocaleString('en')}. Raise maxBytes, or ` +
      'lower maxKeys.',
  )
}

/** Grows the buffer for a new table. Another thread may do the same at once. */
function makeRoom(buffer: SharedArrayBuffer, name: string, bytes: number): void {
  while (buffer.byteLength < bytes) {
    try {
      buffer.grow(bytes)
    } catch (cause) {
      if (buffer.byteLength >= bytes) return
      throw new SluiceError(
        'SLUICE_STORE_FULL',
        `the system refused the ${bytes.toLocaleString('en')} bytes of shared memory that ` +
          `the limiter "${name}" needs.`,
        { cause },
      )
    }
  }
}
