// @ts-check
/**
 * The workloads of every contestant: `inFlight` calls at any time, over `keys` keys, for a while.
 * The limit is per hour and key, so each key is refused after `limit` calls.
 *
 * @typedef {object} Workload
 * @property {string} about
 * @property {number} inFlight
 * @property {number} keys
 * @property {number} limit
 * @property {string[]} contestants
 */

const all = [
  ...['sluice', 'sluice-window', 'sluice-two-rules'],
  ...['rate-limit-redis', 'rate-limiter-flexible', 'upstash'],
]

/** @type {Record<string, Workload>} */
export const workloads = {
  one: {
    about: '1 call in flight, 100,000 keys',
    inFlight: 1,
    keys: 100_000,
    limit: 10_000_000,
    contestants: all,
  },
  fifty: {
    about: '50 calls in flight, 100,000 keys',
    inFlight: 50,
    keys: 100_000,
    limit: 10_000_000,
    contestants: all,
  },
  many: {
    about: '500 calls in flight, 100,000 keys',
    inFlight: 500,
    keys: 100_000,
    limit: 10_000_000,
    contestants: all,
  },
  hot: {
    about: '500 calls in flight, one key',
    inFlight: 500,
    keys: 1,
    limit: 10_000_000,
    contestants: all,
  },
  lease: {
    about: '1 call in flight, one key',
    inFlight: 1,
    keys: 1,
    limit: 10_000_000,
    contestants: ['sluice-lease', 'sluice', 'rate-limit-redis', 'rate-limiter-flexible'],
  },
  attack: {
    about:
      '50 calls in flight; 95 % of them about 20,000 keys that are over their limit, the rest new',
    inFlight: 50,
    keys: 20_000,
    limit: 5,
    contestants: [
      'sluice-deny-cache',
      'sluice',
      'rate-limiter-flexible-block',
      'rate-limiter-flexible',
    ],
  },
}
