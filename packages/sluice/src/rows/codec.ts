import type { Rule } from '../core/rule.ts'

/**
 * The text format of a row in remote engines. It has one line per rule, `CELLS@FRESH:RULE`, after
 * `!INSTANT` if the key is blocked until INSTANT (microseconds). Numbers are hexadecimal.
 *
 * - CELLS are separated by spaces.
 * - FRESH is the millisecond at which the rule's state is fresh and the line can be dropped.
 * - RULE is the rule's text with the algorithm's code in place of its name. A tab and the rule's name
 *   follow if that differs from the algorithm's name.
 *
 * If the engine reports when a row expires, and the row has neither a block nor lines of other
 * rules, FRESH is left out: `CELLS:RULE` is fresh when the row expires, at the latest. A later
 * format must start differently, so that this code never misreads it.
 */

/** RowLine is the line of one rule in a row. */
export interface RowLine {
  readonly cells: readonly number[]
  /** When the state is fresh, in milliseconds; undefined if only the row's expiry tells. */
  readonly freshMs: number | undefined
  /** The rule that wrote it, from `labelOf`. */
  readonly label: string
}

/** RowText is a decoded row. */
export interface RowText {
  /** The instant up to which the key is blocked; 0 if it is not. */
  readonly blockUs: number
  readonly lines: readonly RowLine[]
}

const LINE = /^([\da-f][\da-f ]*)(?:@([\da-f]+))?:(.+)$/

/** readRow decodes a row. Returns undefined for text that is no row of this format. */
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

/** writeRow encodes a row that has a block or at least one line. */
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

/** labelOf returns the RULE part of a line. Rule names and texts contain no tabs. */
export function labelOf({ name, algorithm, text }: Rule): string {
  const end = ` ${algorithm.name}`
  const code = algorithm.code === USUAL ? '' : ` ${algorithm.code}`
  const label = `${text.endsWith(end) ? text.slice(0, -end.length) : text}${code}`
  return name === algorithm.name ? label : `${label}\t${name}`
}

/** textOf returns the rule's text in a label, without the algorithm. */
export function textOf(label: string): string {
  const words = label.split('\t')[0].split(' ')
  return (words.length % 2 === 0 ? words.slice(0, -1) : words).join(' ')
}

/**
 * ownerOf returns the part of a label that is independent of limits: the algorithm's code, a tab,
 * and the rule's name, if that differs from the algorithm's. Parameters come in pairs, so an
 * unpaired last word is the code.
 */
export function ownerOf(label: string): string {
  const [text, name = ''] = label.split('\t')
  const words = text.split(' ')
  const code = words.length % 2 === 0 ? words[words.length - 1] : USUAL
  return `${code}\t${name}`
}

/** Cells of a list before its entries: the index of the oldest, their number, their units. */
const LIST_HEAD = 3

/** fillCells copies the cells of a line into `cells`, or into a larger array if they do not fit. */
export function fillCells(
  cells: Float64Array,
  numbers: readonly number[],
  rule: Rule,
): Float64Array {
  if (rule.algorithm.grows) return listOf(numbers)
  // The same rule with other limits may have more cells, or fewer.
  const count = Math.max(rule.algorithm.cells(rule), numbers.length)
  const own = cells.length < count ? new Float64Array(count) : cells
  own.fill(0)
  for (let i = 0; i < numbers.length; i += 1) own[i] = numbers[i]
  return own
}

/** cellsOf returns the CELLS of a line for the state at `at`. For a list these are its entries. */
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
