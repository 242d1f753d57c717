import { RateLimiterMemory } from 'rate-limiter-flexible'

/**
 * make follows "Basic Example" and "Basic Options" in the README. `keyPrefix`, one of its other
 * options, is empty: that saves it a concatenation for every call. It cannot be bounded.
 * @type {import('../lib/adapter.mjs').Make}
 */
export function make(limit, perMs) {
  const limiter = new RateLimiterMemory({ points: limit, duration: perMs / 1_000, keyPrefix: '' })
  return { ask: (key) => limiter.consume(key), passes: () => true }
}
