import { MemoryStore } from 'express-rate-limit'

/**
 * make follows "Usage" and "Data Stores" in the README: the built-in memory store with `windowMs`
 * and `limit`, awaited once as its middleware does. It cannot be bounded.
 * @type {import('../lib/adapter.mjs').Make}
 */
export function make(limit, perMs) {
  const store = new MemoryStore()
  store.init({ windowMs: perMs })
  return { ask: (key) => store.increment(key), passes: ({ totalHits }) => totalHits <= limit }
}
