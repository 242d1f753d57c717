import { readRule } from '../../core/read-rule.ts'
import type { Rule } from '../../core/rule.ts'
import {
  cellsOf,
  fillCells,
  ownerOf,
  type RowLine,
  type RowText,
  readRow,
  textOf,
} from '../../rows/codec.ts'
import { isOlder } from './batch.ts'
import type { RedisRules } from './rule-set.ts'

const NONE: RowText = { blockUs: 0, lines: [] }

/**
 * carriedOver is a row as if it had been written for these rules: what was used stays used. Lines of
 * other rules stay as they are. A row or a line that cannot be read counts as all used: it may be of
 * a node that knows more than this one.
 */
export function carriedOver(
  text: string,
  set: RedisRules,
  nowUs: number,
): { readonly row: RowText; readonly expiresMs: number } {
  const known = readRow(text)
  const { blockUs, lines } = known ?? NONE
  const own = set.stateful.map((rule, i): RowLine => {
    const label = set.labels[i]
    const same = lines.find((line) => line.label === label)
    const older = lines.find((line) => ownerOf(line.label) === set.owners[i])
    const state = same
      ? fillCells(new Float64Array(3), same.cells, rule)
      : stateFrom(older, rule, known === undefined, nowUs)
    const freshMs = Math.ceil(rule.algorithm.freshAtUs(state, 0, rule) / 1_000)
    return { cells: cellsOf(state, rule), freshMs, label }
  })
  const others = lines.filter(({ label }) => !set.labels.includes(label) && !isOlder(label, set))
  const all = [...own, ...others].filter(({ freshMs = 0 }) => freshMs * 1_000 > nowUs)
  const blockMs = Math.ceil(blockUs / 1_000)
  const expiresMs = Math.max(1, blockMs, ...all.map(({ freshMs = 0 }) => freshMs))
  // Of a row that is fresh nothing is left: an expiry in 1970 removes it.
  return { row: { blockUs, lines: all }, expiresMs }
}

function stateFrom(
  line: RowLine | undefined,
  rule: Rule,
  isLost: boolean,
  nowUs: number,
): Float64Array {
  const empty = fillCells(new Float64Array(3), [], rule)
  if (!line && !isLost) return empty
  try {
    const text = `${textOf(line!.label)} ${rule.algorithm.name}`
    const from = readRule(text, [rule.algorithm], rule.name)
    const state = fillCells(new Float64Array(3), line!.cells, from)
    rule.algorithm.carry(state, 0, from, rule, nowUs)
    return state
  } catch {
    const state = rule.algorithm.grow(empty, rule, nowUs)
    rule.algorithm.spend(state, 0, rule, rule.capacity, nowUs)
    return state
  }
}
