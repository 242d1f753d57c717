import LocalStore from '@fastify/rate-limit/store/LocalStore.js'

/**
 * make follows "Options" in the README: `max`, `timeWindow`, and `cache` for the number of clients
 * that its LRU keeps. The plugin makes its store with the same three arguments.
 * @type {import('../lib/adapter.mjs').Make}
 */
export function make(limit, perMs, maxKeys) {
  const store = new LocalStore(false, false, maxKeys)
  let used = 0
  const read = (_error, answer) => {
    used = answer.current
  }
  return (key) => {
    store.incr(key, read, perMs, limit)
    return used <= limit
  }
}
