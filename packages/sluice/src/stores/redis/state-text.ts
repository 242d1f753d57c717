import type { Rule } from '../../core/rule.ts'

/** Cells of a list before its entries: where the oldest is, how many there are, their units. */
const LIST_HEAD = 3

/**
 * readState reads a state as the script wrote it into `cells`, or into a larger array if these are
 * too few, and gives the array. What is no state is fresh.
 */
export function readState(text: string | null, rule: Rule, cells: Float64Array): Float64Array {
  if (text === null) return fill(cells, [], rule)
  const gap = text.indexOf(' ')
  if (gap >= 0) {
    const numbers = text
      .slice(gap + 1)
      .split(' ')
      .map(Number)
    return fill(cells, numbers.every(Number.isSafeInteger) ? numbers : [], rule)
  }
  const cell = Number(text.slice(0, -3))
  return fill(cells, Number.isSafeInteger(cell) ? [cell] : [], rule)
}

/** idOf is the number of the figures that a state was written for. */
export function idOf(text: string): string {
  const gap = text.indexOf(' ')
  return gap >= 0 ? text.slice(0, gap) : text.slice(-3)
}

/** writeState writes a state for the script. */
export function writeState(id: string, cells: Float64Array, rule: Rule): string {
  if (rule.algorithm.grows) return [id, ...entriesOf(cells)].join(' ')
  const numbers = [...cells.subarray(0, rule.algorithm.cells(rule))]
  return numbers.length === 1 && id.length === 3 ? `${numbers[0]}${id}` : [id, ...numbers].join(' ')
}

function fill(cells: Float64Array, numbers: readonly number[], rule: Rule): Float64Array {
  if (rule.algorithm.grows) return listOf(numbers)
  // A rule of other figures may have had more cells, or fewer.
  const count = Math.max(rule.algorithm.cells(rule), numbers.length)
  const own = cells.length < count ? new Float64Array(count) : cells
  own.fill(0)
  for (let i = 0; i < numbers.length; i += 1) own[i] = numbers[i]
  return own
}

function entriesOf(list: Float64Array): number[] {
  const [first, count] = list
  const slots = (list.length - LIST_HEAD) / 2
  return Array.from({ length: 2 * count }, (_, i) => {
    const entry = (first + (i >> 1)) % slots
    return list[LIST_HEAD + 2 * entry + (i & 1)]
  })
}

function listOf(given: readonly number[]): Float64Array {
  const entries = given.length % 2 === 0 ? given : []
  let units = 0
  for (let i = 1; i < entries.length; i += 2) units += entries[i]
  return Float64Array.from([0, entries.length / 2, units, ...entries])
}
