// @ts-check

/** @typedef {{ median: number, min: number, max: number }} Spread */

/**
 * median returns the middle value, or the mean of the two in the middle. NaN when there are none.
 * @param {readonly number[] | Float64Array} values
 * @returns {number}
 */
export function median(values) {
  const sorted = Float64Array.from(values).sort()
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/**
 * spreadOf returns the median, the lowest and the highest value, or undefined when there are none.
 * @param {readonly number[]} values
 * @returns {Spread | undefined}
 */
export function spreadOf(values) {
  if (values.length === 0) return undefined
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) }
}

/**
 * ratiosTo divides each repetition by the reference's result in the same repetition, which ran close
 * to it in time: what slows the machine down for a while slows down both.
 * @param {ReadonlyMap<number, number>} values by repetition
 * @param {ReadonlyMap<number, number>} reference by repetition
 * @returns {Spread | undefined} undefined when no repetition has both
 */
export function ratiosTo(values, reference) {
  const ratios = []
  for (const [repetition, value] of values) {
    const other = reference.get(repetition)
    if (other !== undefined) ratios.push(value / other)
  }
  return spreadOf(ratios)
}

/**
 * longestStall returns how much longer than the median the longest slice took.
 * @param {readonly number[] | Float64Array} slicesMs
 * @returns {number} milliseconds
 */
export function longestStall(slicesMs) {
  let longest = 0
  for (const ms of slicesMs) if (ms > longest) longest = ms
  return longest - median(slicesMs)
}

/**
 * countRefused returns how many of the calls from `from` to `to` an exact limiter refuses in a time
 * in which nothing refills, after `before` calls per key and the calls before `from`.
 * @param {Uint32Array} order @param {number} from @param {number} to
 * @param {{ keys: number, limit: number, before: number }} given
 * @returns {number}
 */
export function countRefused(order, from, to, { keys, limit, before }) {
  const asked = new Uint32Array(keys).fill(before)
  let refused = 0
  for (let i = 0; i < to; i += 1) {
    asked[order[i]] += 1
    if (i >= from && asked[order[i]] > limit) refused += 1
  }
  return refused
}
