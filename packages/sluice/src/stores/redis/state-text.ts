import type { Rule } from '../../rule.ts'

/** Cells of a list before its entries: where the oldest is, how many there are, their units. */
const LIST_HEAD = 3

/** decodeState reads a state as the script wrote it: the number of its figures, and its cells. */
export function decodeState(value: string, rule: Rule): { id: number; cells: Float64Array } {
  const texts = value.includes(' ') ? value.split(' ') : [value.slice(-3), value.slice(0, -3)]
  const [id, ...numbers] = texts.map(Number)
  if (rule.algorithm.grows) return { id, cells: listOf(numbers) }
  // Never fewer than any algorithm has.
  return { id, cells: Float64Array.from([...numbers, 0, 0, 0]) }
}

/** encodeState writes a state for the script. */
export function encodeState(id: number, cells: Float64Array, rule: Rule): string {
  const numbers = rule.algorithm.grows ? entriesOf(cells) : [...cells.subarray(0, 3)]
  return [id, ...numbers].join(' ')
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
