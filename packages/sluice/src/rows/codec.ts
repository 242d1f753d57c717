import type { Rule } from '../core/rule.ts'

/**
 * A row as remote engines keep it: a text of lines. One line for each rule that wrote it,
 * `CELLS@FRESH:RULE`, and `!INSTANT` first if the key is blocked. Numbers are hexadecimal. CELLS have a
 * space between; FRESH is the millisecond from which on the line says nothing any more; RULE is the
 * text of the rule, with the algorithm's code for its name, and after a tab the rule's name, if that is
 * not the algorithm's. Where an engine tells when a row expires, the lines of a node that finds neither
 * a block nor other rules are `CELLS:RULE`: they are fresh when the row expires, at the latest.
 * A later format begins with something else, so that it is never taken for this one.
 */

/** RowLine is what one rule has written into a row. */
export interface RowLine {
  readonly cells: readonly number[]
  /** When it is fresh, in milliseconds; undefined where the row tells it by its expiry. */
  readonly freshMs: number | undefined
  /** The rule that wrote it, from `labelOf`. */
  readonly label: string
}

/** RowText is a row that was read. */
export interface RowText {
  /** The instant up to which the key is blocked; 0 if it is not. */
  readonly blockUs: number
  readonly lines: readonly RowLine[]
}

const LINE = /^([\da-f][\da-f ]*)(?:@([\da-f]+))?:(.+)$/

/** readRow reads a row; undefined if it is none, or of another format. */
export function readRow(text: string): RowText | undefined {
  let blockUs = 0
  const lines: RowLine[] = []
  for (const line of text.split('\n')) {
    const block = /^!([\da-f]+)$/.exec(line)?.[1]
    if (block !== undefined) {
      blockUs = Number.parseInt(block, 16)
      continue
    }
    const found = LINE.exec(line)
    const cells = found?.[1].split(' ').map((cell) => Number.parseInt(cell, 16)) ?? [Number.NaN]
    if (!found || !cells.every(Number.isSafeInteger)) return undefined
    const freshMs = found[2] === undefined ? undefined : Number.parseInt(found[2], 16)
    lines.push({ cells, freshMs, label: found[3] })
  }
  return Number.isSafeInteger(blockUs) ? { blockUs, lines } : undefined
}

/** writeRow writes a row that has something in it. */
export function writeRow({ blockUs, lines }: RowText): string {
  const parts = blockUs > 0 ? [`!${blockUs.toString(16)}`] : []
  for (const { cells, freshMs, label } of lines) {
    const fresh = freshMs === undefined ? '' : `@${freshMs.toString(16)}`
    const numbers = cells.length > 0 ? cells.map((cell) => cell.toString(16)).join(' ') : '0'
    parts.push(`${numbers}${fresh}:${label}`)
  }
  return parts.join('\n')
}

/** The code of token buckets, which labels leave out. */
const USUAL = 'T'

/** labelOf says which rule wrote a line. Names and texts have no tabs. */
export function labelOf({ name, algorithm, text }: Rule): string {
  const end = ` ${algorithm.name}`
  const code = algorithm.code === USUAL ? '' : ` ${algorithm.code}`
  const label = `${text.endsWith(end) ? text.slice(0, -end.length) : text}${code}`
  return name === algorithm.name ? label : `${label}\t${name}`
}

/** textOf is the rule's text in a label, without the algorithm. */
export function textOf(label: string): string {
  const words = label.split('\t')[0].split(' ')
  return (words.length % 2 === 0 ? words.slice(0, -1) : words).join(' ')
}

/**
 * ownerOf says whose cells a line has, whatever the limits were: the algorithm's code, a tab, and the
 * rule's name, if that is not the algorithm's. Parameters come in pairs, so an odd word at the end is
 * the code.
 */
export function ownerOf(label: string): string {
  const [text, name = ''] = label.split('\t')
  const words = text.split(' ')
  const code = words.length % 2 === 0 ? words[words.length - 1] : USUAL
  return `${code}\t${name}`
}

/** Cells of a list before its entries: where the oldest is, how many there are, their units. */
const LIST_HEAD = 3

/** fillCells puts the cells of a line into `cells`, or a larger array if these are too few. */
export function fillCells(
  cells: Float64Array,
  numbers: readonly number[],
  rule: Rule,
): Float64Array {
  if (rule.algorithm.grows) return listOf(numbers)
  // A rule of other limits may have had more cells, or fewer.
  const count = Math.max(rule.algorithm.cells(rule), numbers.length)
  const own = cells.length < count ? new Float64Array(count) : cells
  own.fill(0)
  for (let i = 0; i < numbers.length; i += 1) own[i] = numbers[i]
  return own
}

/** cellsOf are the cells of the state at `at`, for a line. Of a list they are the entries. */
export function cellsOf(state: Float64Array, at: number, rule: Rule): number[] {
  if (!rule.algorithm.grows) return [...state.subarray(at, at + rule.algorithm.cells(rule))]
  const [first, count] = state
  const slots = (state.length - LIST_HEAD) / 2
  return Array.from({ length: 2 * count }, (_, i) => {
    const entry = (first + (i >> 1)) % slots
    return state[LIST_HEAD + 2 * entry + (i & 1)]
  })
}

function listOf(given: readonly number[]): Float64Array {
  const entries = given.length % 2 === 0 ? given : []
  let units = 0
  for (let i = 1; i < entries.length; i += 2) units += entries[i]
  return Float64Array.from([0, entries.length / 2, units, ...entries])
}
