import { memoryStore } from '@joint-ops/hitlimit/stores/memory'

/**
 * make follows "Memory" under "8 Storage Backends" in the README: the default store, called the way
 * the synchronous path of its middleware does. It cannot be bounded.
 * @type {import('../lib/adapter.mjs').Make}
 */
export function make(limit, perMs) {
  const store = memoryStore()
  return (key) => store.hit(key, perMs, limit).count <= limit
}
