import { MemoryStore } from 'hono-rate-limiter'

/**
 * make takes the default store. The README only points to the site, where `windowMs` and `limit`
 * are the options; `init` is how the middleware passes `windowMs`. It cannot be bounded.
 * @type {import('../lib/adapter.mjs').Make}
 */
export function make(limit, perMs) {
  const store = new MemoryStore()
  store.init({ windowMs: perMs })
  return (key) => store.increment(key).totalHits <= limit
}
