import { createLimiter, tokenBucket } from 'sluice'
import { sharedMemoryStore } from 'sluice/shared-memory'

/**
 * make follows docs/guide/shared-memory.md, with `allow` and one thread.
 * @type {import('../lib/adapter.mjs').Make}
 */
export function make(limit, perMs, maxKeys) {
  const store = sharedMemoryStore({ maxKeys })
  const limiter = createLimiter(tokenBucket({ limit, per: perMs }), { store })
  return (key) => limiter.allow(key)
}
