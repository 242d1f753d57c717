import { SluiceError } from 'sluice'
import { cut } from '../report/shown.ts'
import { createCombinedReader } from './combined-lines.ts'
import { createCsvReader, splitCsv } from './csv-lines.ts'
import { createFieldReader, type FieldNames, isUsual } from './fields.ts'
import type { PathNeed } from './http-request.ts'
import { createJsonReader } from './json-lines.ts'
import type { LineReader } from './request.ts'

/**
 * FORMATS are the formats of logs. `decisions` is the service's decision log: JSON of fixed names.
 */
export const FORMATS = ['combined', 'json', 'csv', 'decisions'] as const

/** Format is one of `FORMATS`. */
export type Format = (typeof FORMATS)[number]

/** LogOptions say how to read a log; missing options are detected. */
export interface LogOptions {
  readonly format?: Format | undefined
  /** What identifies a client in the combined format: `address` or `user`. */
  readonly key?: string | undefined
  readonly fields: FieldNames
  /** Whether the rule sets need paths, methods and hosts. */
  readonly paths?: PathNeed | undefined
}

/** OpenFormat reads the lines of one log. */
export interface OpenFormat {
  readonly format: Format
  readonly read: LineReader
  /** The names of the fields in use, for formats that have names. */
  names(): FieldNames
  /** Whether the first line has names and is no request. */
  readonly hasHeader: boolean
}

const COMBINED = /^\S+ \S+ .*\[\d\d\/\w{3}\/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\]/
/** What every line of a decision log has, and other JSON may have in part. */
const DECIDED = ['"time":', '"key":', '"outcome":']
const DECISIONS: FieldNames = { time: 'time', key: 'key', cost: 'cost', tier: 'tier' }

/**
 * openFormat makes the reader for a log that begins with `lines`, at least one. It throws
 * `SLUICE_OPTION` if no format was given and none is recognised.
 */
export function openFormat(lines: readonly string[], options: LogOptions): OpenFormat {
  const format = options.format ?? detected(lines, options.fields)
  if (format === 'combined') {
    return {
      format,
      read: createCombinedReader(options.key, options.paths),
      names: () => ({}),
      hasHeader: false,
    }
  }
  if (options.key !== undefined) {
    throw new SluiceError(
      'SLUICE_OPTION',
      `--key is for the combined format, and this is ${format}. Name the field: --key-field NAME`,
    )
  }
  if (format === 'decisions') {
    const named = given(options.fields)
    const costsOfRoutes = named.cost === undefined
    const fields = createFieldReader({ ...DECISIONS, ...named }, options.paths, costsOfRoutes)
    const read = createJsonReader(fields)
    return { format, read, names: () => named, hasHeader: false }
  }
  const fields = createFieldReader(options.fields, options.paths)
  const hasHeader = format === 'csv'
  const read = hasHeader ? createCsvReader(lines[0], fields) : createJsonReader(fields)
  return { format, read, names: fields.names, hasHeader }
}

function detected(lines: readonly string[], fields: FieldNames): Format {
  for (const line of lines) {
    if (line[0] === '{') return DECIDED.every((mark) => line.includes(mark)) ? 'decisions' : 'json'
    if (COMBINED.test(line)) return 'combined'
  }
  const names = (splitCsv(lines[0]) ?? []).map((name) => name.trim())
  const has = (of: 'time' | 'key') => names.some((name) => name === fields[of] || isUsual(of, name))
  if (names.length > 1 && (has('time') || has('key'))) return 'csv'
  throw new SluiceError(
    'SLUICE_OPTION',
    `cannot detect the format of a log that begins with ${JSON.stringify(cut(lines[0], 60))}. ` +
      `Give it: --format ${FORMATS.join('|')}`,
  )
}

function given(fields: FieldNames): FieldNames {
  return Object.fromEntries(Object.entries(fields).filter(([, name]) => name !== undefined))
}
