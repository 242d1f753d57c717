import { SluiceError } from 'sluice'
import type { FieldReader, Look } from './fields.ts'
import type { LineReader } from './request.ts'

/**
 * createCsvReader reads comma-separated values under `header`, the first line. Values may be in
 * double quotes, with doubled quotes inside; a value cannot span lines. A repeated name of a used
 * column throws `SLUICE_OPTION`.
 */
export function createCsvReader(header: string, fields: FieldReader): LineReader {
  const names = (splitCsv(header) ?? []).map((name) => name.trim())
  const columns = new Map(names.map((name, i) => [name, i]))
  let values: readonly string[]

  const look: Look = (name) => {
    const column = columns.get(name)
    if (column === undefined) return undefined
    // The map has the last column of a name. Unused columns may repeat a name.
    if (names.indexOf(name) !== column) {
      throw new SluiceError(
        'SLUICE_OPTION',
        `the first line of the CSV has the name ${JSON.stringify(name)} twice. Rename one of them.`,
      )
    }
    return values[column]
  }

  return (line) => {
    const split = splitCsv(line)
    if (!split) return 'a quote is not closed'
    if (split.length !== names.length) {
      return `it has ${split.length} values for ${names.length} columns`
    }
    values = split
    return fields.read(look)
  }
}

/** splitCsv returns the values of a line; undefined if a quote is not closed. */
export function splitCsv(line: string): string[] | undefined {
  if (!line.includes('"')) return line.split(',')
  const values: string[] = []
  let at = 0
  for (;;) {
    let value = ''
    if (line[at] === '"') {
      at += 1
      for (;;) {
        const end = line.indexOf('"', at)
        if (end < 0) return undefined
        value += line.slice(at, end)
        at = end + 1
        if (line[at] !== '"') break
        value += '"'
        at += 1
      }
    }
    const end = line.indexOf(',', at)
    values.push(value + line.slice(at, end < 0 ? line.length : end))
    if (end < 0) return values
    at = end + 1
  }
}
