// @ts-check
import { rising, uniform, zipf } from './random.mjs'

/**
 * @typedef {object} Workload
 * @property {(keys: string) => string} about for readers of the tables
 * @property {number} limit of each key, per day: nothing refills or expires while it is measured
 * @property {number} keys
 * @property {number} maxKeys for the contestants that can be bounded
 * @property {boolean} filled whether each key is called once before the timed calls
 * @property {number} warmCalls calls before the timed ones, at most
 * @property {number} calls timed calls, at most; slow contestants make fewer unless `wholly`
 * @property {boolean} [wholly] whether all contestants make all calls, since refusals depend on it
 * @property {boolean} [flood] whether calls are timed in slices, for stalls, and slow contestants stopped
 * @property {number} guessS rough seconds of a process; only the ratios matter
 * @property {(n: number) => string} keyOf
 * @property {(keys: number, length: number, random: (n: number) => number) => Uint32Array} order
 * @property {Partial<Workload>} quick the smaller values for `--quick`
 */

const HOT = 'key:1000000'

/** Keys of 11 characters, which V8 stores as flat strings. */
const numbered = (/** @type {number} */ n) => `key:${1_000_000 + n}`

/** Keys of 30 characters. */
const composite = (/** @type {number} */ n) =>
  `tenant:${1_000 + (n % 100)}:user:${100_000 + n}:/login`

const always = (/** @type {number} */ _keys, /** @type {number} */ length) =>
  new Uint32Array(length)

/**
 * workloads are run by every contestant, with the same keys in the same order in a
 * repetition. Limits are such that all contestants refuse the same calls.
 * @type {Readonly<Record<string, Workload>>}
 */
export const workloads = {
  hot: {
    about: () => 'One key, the same string object at each call; all allowed.',
    limit: 10_000_000,
    keys: 1,
    maxKeys: 1_000_000,
    filled: false,
    warmCalls: 2_000_000,
    calls: 5_000_000,
    guessS: 0.6,
    keyOf: () => HOT,
    order: always,
    quick: { warmCalls: 500_000, calls: 2_000_000 },
  },
  'hot-refused': {
    about: () => 'One key, the same string object at each call, over its limit.',
    limit: 100,
    keys: 1,
    maxKeys: 1_000_000,
    filled: false,
    warmCalls: 2_000_000,
    calls: 5_000_000,
    guessS: 0.6,
    keyOf: () => HOT,
    order: always,
    quick: { warmCalls: 500_000, calls: 2_000_000 },
  },
  '10k': {
    about: (keys) =>
      `${keys} keys of 11 characters in random order, built for each call; all allowed.`,
    limit: 1_000,
    keys: 10_000,
    maxKeys: 1_000_000,
    filled: true,
    warmCalls: 500_000,
    calls: 3_000_000,
    guessS: 0.7,
    keyOf: numbered,
    order: uniform,
    quick: { calls: 1_000_000 },
  },
  '1M': {
    about: (keys) =>
      `${keys} keys of 11 characters in random order, built for each call; all allowed.`,
    limit: 1_000,
    keys: 1_000_000,
    maxKeys: 2_000_000,
    filled: true,
    warmCalls: 200_000,
    calls: 1_500_000,
    guessS: 3,
    keyOf: numbered,
    order: uniform,
    quick: { keys: 125_000, maxKeys: 250_000, warmCalls: 50_000, calls: 200_000 },
  },
  zipf: {
    about: (keys) =>
      `${keys} keys, the k-th most popular called 1 / k times as often as the first, built for ` +
      'each call; the popular ones are over their limit.',
    limit: 100,
    keys: 1_000_000,
    maxKeys: 2_000_000,
    filled: true,
    warmCalls: 100_000,
    calls: 300_000,
    wholly: true,
    guessS: 3,
    keyOf: numbered,
    order: zipf,
    quick: { keys: 125_000, maxKeys: 250_000, warmCalls: 30_000, calls: 60_000 },
  },
  composite: {
    about: (keys) =>
      `${keys} keys of 30 characters in random order, joined for each call; all allowed.`,
    limit: 1_000,
    keys: 100_000,
    maxKeys: 1_000_000,
    filled: true,
    warmCalls: 200_000,
    calls: 1_500_000,
    guessS: 1,
    keyOf: composite,
    order: uniform,
    quick: { keys: 25_000, calls: 300_000 },
  },
  flood: {
    about: (keys) =>
      `${keys} distinct keys, each called once, on an empty store that keeps a fifth of them if it ` +
      'can be bounded; all allowed.',
    limit: 1_000,
    keys: 5_020_000,
    maxKeys: 1_000_000,
    filled: false,
    warmCalls: 20_000,
    calls: 5_000_000,
    wholly: true,
    flood: true,
    guessS: 6,
    keyOf: numbered,
    order: rising,
    quick: { keys: 320_000, maxKeys: 60_000, calls: 300_000 },
  },
}

/**
 * sized returns a workload in full or quick size.
 * @param {string} name @param {boolean} quick
 * @returns {Workload}
 */
export function sized(name, quick) {
  const workload = workloads[name]
  return quick ? { ...workload, ...workload.quick } : workload
}
