// @ts-check

/**
 * randomOf returns a generator of whole numbers below `n`, n up to 2^32: the same seed, the same
 * numbers. (mulberry32: a counter through a mixer.)
 * @param {number} seed
 * @returns {(n: number) => number}
 */
export function randomOf(seed) {
  let state = seed | 0
  return (n) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * n)
  }
}

/**
 * uniform draws `length` of `n` things with equal probability.
 * @param {number} n @param {number} length @param {(n: number) => number} random
 * @returns {Uint32Array}
 */
export function uniform(n, length, random) {
  return drawn(length, () => random(n))
}

/**
 * rising returns 0, 1, 2 and so on, whatever `n`.
 * @param {number} _n @param {number} length
 * @returns {Uint32Array}
 */
export function rising(_n, length) {
  return drawn(length, (i) => i)
}

/** A prime that divides none of the numbers of keys: multiplying by it spreads the ranks. */
const SPREAD = 7_919

/**
 * zipf draws `length` of `n` things, the k-th most popular 1 / k times as often as the first. Which
 * ones are popular is spread over the whole range, so that they are not neighbours in memory.
 * @param {number} n not a multiple of 7,919
 * @param {number} length @param {(n: number) => number} random
 * @returns {Uint32Array}
 */
export function zipf(n, length, random) {
  const upTo = new Float64Array(n)
  let sum = 0
  for (let rank = 0; rank < n; rank += 1) {
    sum += 1 / (rank + 1)
    upTo[rank] = sum
  }
  return drawn(length, () => {
    const rank = firstAbove(upTo, (random(2 ** 32) / 2 ** 32) * sum)
    return (rank * SPREAD) % n
  })
}

/** @param {number} length @param {(i: number) => number} draw */
function drawn(length, draw) {
  const values = new Uint32Array(length)
  for (let i = 0; i < length; i += 1) values[i] = draw(i)
  return values
}

/** @param {Float64Array} ascending @param {number} value */
function firstAbove(ascending, value) {
  let low = 0
  let high = ascending.length - 1
  while (low < high) {
    const middle = (low + high) >>> 1
    if (ascending[middle] > value) high = middle
    else low = middle + 1
  }
  return low
}
