import type { Rule } from '../../rule.ts'

/** Cells of a list before its entries: where the oldest is, how many there are, their units. */
const LIST_HEAD = 3

/** StoredState is a state as it stands in Redis: the number of its figures, and its cells. */
export interface StoredState {
  readonly id: string
  readonly cells: Float64Array
}

/** decodeState reads a state as the script wrote it; what is no state is fresh. */
export function decodeState(value: string | null, rule: Rule): StoredState {
  if (value === null) return { id: '', cells: cellsOf([], rule) }
  if (!value.includes(' ')) {
    const cell = Number(value.slice(0, -3))
    if (Number.isSafeInteger(cell)) return { id: value.slice(-3), cells: cellsOf([cell], rule) }
  }
  const [id, ...cells] = value.split(' ')
  return { id, cells: cellsOf(/^[\d ]+$/.test(value) ? cells.map(Number) : [], rule) }
}

/** encodeState writes a state for the script. */
export function encodeState(id: string, cells: Float64Array, rule: Rule): string {
  const numbers = rule.algorithm.grows ? entriesOf(cells) : [...cells]
  return [id, ...numbers].join(' ')
}

function cellsOf(numbers: readonly number[], rule: Rule): Float64Array {
  if (rule.algorithm.grows) return listOf(numbers)
  // A rule of other figures may have had more cells, or fewer.
  const cells = new Float64Array(Math.max(rule.algorithm.cells(rule), numbers.length, 3))
  cells.set(numbers)
  return cells
}

function entriesOf(list: Float64Array): number[] {
  const [first, count] = list
  const slots = (list.length - LIST_HEAD) / 2
  return Array.from({ length: 2 * count }, (_, i) => {
    const entry = (first + (i >> 1)) % slots
    return list[LIST_HEAD + 2 * entry + (i & 1)]
  })
}

function listOf(entries: readonly number[]): Float64Array {
  let units = 0
  for (let i = 1; i < entries.length; i += 2) units += entries[i]
  return Float64Array.from([0, entries.length / 2, units, ...entries])
}
