import { readRule } from '../core/read-rule.ts'
import type { Rule } from '../core/rule.ts'
import { cellsOf, fillCells, ownerOf, type RowLine, readRow, textOf, writeRow } from './codec.ts'
import { createLists } from './lists.ts'
import type { Row } from './row.ts'

/** OwnLine locates a rule of the set: its cells in an open row, and its line in the row's text. */
export interface OwnLine {
  readonly rule: Rule
  /** Its index among the rules of the set; −1 for the penalty. */
  readonly index: number
  /** Where its cells begin. A list has one cell, its index. */
  readonly at: number
  /** The line's label, from `labelOf`; and its owner, from `ownerOf`, which ignores limits. */
  readonly label: string
  readonly owner: string
}

/** OpenRow is the decoded row of a remote engine, laid out for the rules of one set. */
export interface OpenRow extends Row {
  readonly lines: readonly OwnLine[]
  /** Matches the text of a row that only these rules wrote, and captures its cells. */
  readonly pattern: RegExp | undefined
  /** The instant up to which the key is blocked. */
  blockUs: number
  /** The lines of other rules. */
  others: readonly RowLine[]
  /** The row was written with other limits, or cannot be decoded, so its text must be rewritten. */
  isCarried: boolean
  /** The row was changed since it was opened: a spend, a refund or a block. */
  isChanged: boolean
}

/** openRowFor creates an empty row for these lines, with `stride` cells. */
export function openRowFor(lines: readonly OwnLine[], stride: number): OpenRow {
  return {
    lines,
    pattern: patternOf(lines),
    cells: new Float64Array(stride),
    base: 0,
    lists: createLists(),
    blockUs: 0,
    others: [],
    isCarried: false,
    isChanged: false,
  }
}

/** Returns undefined without lines, and for lists, which have no fixed number of cells. */
function patternOf(lines: readonly OwnLine[]): RegExp | undefined {
  if (lines.length === 0 || lines.some(({ rule }) => rule.algorithm.grows)) return undefined
  const each = lines.map(({ rule, label }) => {
    const cells = Array(rule.algorithm.cells(rule)).fill('([\\da-f]+)').join(' ')
    return `${cells}(?:@[\\da-f]+)?:${label.replace(/[^\w\t ]/g, '\\$&')}`
  })
  return new RegExp(`^${each.join('\n')}$`)
}

/**
 * openRow decodes a text into `row`; null means that there is no row. Units used under other limits
 * stay used. A row or line that cannot be decoded counts as fully used: a later version of this
 * library may have written it.
 */
export function openRow(row: OpenRow, text: string | null, nowUs: number): OpenRow {
  row.blockUs = 0
  row.others = []
  row.isCarried = false
  row.isChanged = false
  if (text === null) empty(row)
  else if (!readPlain(row, text)) readAny(row, text, nowUs)
  return row
}

function empty({ cells, lists, lines }: OpenRow): void {
  if (lines.length > 0) cells.fill(0)
  lists.clear()
}

/** Decodes a row that only these rules wrote, as nearly every row is; false for any other. */
function readPlain({ pattern, lines, cells }: OpenRow, text: string): boolean {
  const found = pattern?.exec(text)
  if (!found) return false
  let group = 1
  for (let i = 0; i < lines.length; i += 1) {
    const { rule, at } = lines[i]
    const count = rule.algorithm.cells(rule)
    for (let j = 0; j < count; j += 1) {
      const cell = Number.parseInt(found[group + j], 16)
      if (cell > Number.MAX_SAFE_INTEGER) return false
      cells[at + j] = cell
    }
    group += count
  }
  return true
}

function readAny(row: OpenRow, text: string, nowUs: number): void {
  const { lines } = row
  const known = readRow(text)
  empty(row)
  row.blockUs = known?.blockUs ?? 0
  // Without rules there is nothing to carry over: the row stays as it is.
  row.isCarried = !known && lines.length > 0
  const all = known?.lines ?? []
  for (const own of lines) {
    // A second line is of no writer of ours. Engines do not decide on such a row either.
    const [line, second] = all.filter(({ label }) => isOf(own, label))
    if (!line && known) continue
    if (line?.label === own.label && !second) {
      put(row, own, stateOf(own.rule, line.cells))
    } else {
      row.isCarried = true
      put(row, own, carriedOver(second ?? line, own.rule, nowUs))
    }
  }
  row.others = all.filter(({ label }) => !lines.some((own) => isOf(own, label)))
}

function isOf(own: OwnLine, label: string): boolean {
  return own.label === label || own.owner === ownerOf(label)
}

function stateOf(rule: Rule, cells: readonly number[]): Float64Array {
  const count = rule.algorithm.grows ? 0 : rule.algorithm.cells(rule)
  return fillCells(new Float64Array(count), cells, rule)
}

function put({ cells, lists }: OpenRow, { rule, at }: OwnLine, state: Float64Array): void {
  if (rule.algorithm.grows) cells[at] = lists.add(state)
  else cells.set(state.subarray(0, rule.algorithm.cells(rule)), at)
}

/**
 * Carries over the state of an older rule of this name and algorithm; else returns a fully used
 * one.
 */
function carriedOver(line: RowLine | undefined, rule: Rule, nowUs: number): Float64Array {
  const { algorithm } = rule
  try {
    const from = readRule(`${textOf(line!.label)} ${algorithm.name}`, [algorithm], rule.name)
    const most = Math.max(algorithm.cells(from), algorithm.cells(rule))
    const state = fillCells(new Float64Array(algorithm.grows ? 0 : most), line!.cells, from)
    algorithm.carry(state, 0, from, rule, nowUs)
    return state
  } catch {
    const state = algorithm.grow(stateOf(rule, []), rule, nowUs)
    algorithm.spend(state, 0, rule, rule.capacity, nowUs)
    return state
  }
}

/** RowToWrite is a row's text, '' to delete the row, and the millisecond at which it is fresh. */
export interface RowToWrite {
  readonly text: string
  readonly expiresMs: number
  /** Some lines have no fresh time of their own: do not shorten the row's present expiry. */
  readonly keepsExpiry: boolean
}

/**
 * closeRow encodes the row as it is now. With `tellsExpiry` the engine reports when a row expires,
 * so plain rows omit their fresh times. `expiresMs` is the row's present expiry, if it was read.
 */
export function closeRow(
  { lines, cells, lists, blockUs, others }: OpenRow,
  nowUs: number,
  tellsExpiry: boolean,
  expiresMs?: number,
): RowToWrite {
  const own = lines.map(({ rule, at, label }) => {
    const [state, from] = rule.algorithm.grows ? [lists.all[cells[at]], 0] : [cells, at]
    const freshUs = rule.algorithm.freshAtUs(state, from, rule)
    const freshMs = freshUs > nowUs ? Math.ceil(freshUs / 1_000) : 0
    return { cells: cellsOf(state, from, rule), freshMs, label }
  })
  const rest = others
    .map((line) => ({ ...line, freshMs: line.freshMs ?? expiresMs }))
    .filter(({ freshMs }) => freshMs === undefined || freshMs * 1_000 > nowUs)
  const until = blockUs > nowUs ? blockUs : 0
  const keepsExpiry = rest.some(({ freshMs }) => freshMs === undefined)
  const known = [...own, ...rest].map(({ freshMs = 0 }) => freshMs)
  const latestMs = Math.max(Math.ceil(until / 1_000), ...known)
  if (latestMs === 0 && !keepsExpiry) return { text: '', expiresMs: 1, keepsExpiry }
  const isPlain = tellsExpiry && until === 0 && rest.length === 0
  const plain = isPlain ? own.map((line) => ({ ...line, freshMs: undefined })) : own
  const text = writeRow({ blockUs: until, lines: [...plain, ...rest] })
  return { text, expiresMs: latestMs, keepsExpiry }
}

/** freshRow creates an empty row for the same lines. */
export function freshRow(row: OpenRow): OpenRow {
  return { ...row, cells: new Float64Array(row.cells.length), lists: createLists() }
}

/** copyRow copies a row, so that opening the next one does not change it. */
export function copyRow(row: OpenRow): OpenRow {
  const lists = createLists()
  lists.all.push(...row.lists.all.slice(1).map((list) => list.slice()))
  return { ...row, cells: row.cells.slice(), lists }
}
