import { createLimiter, memoryStore, tokenBucket } from 'sluice'

/**
 * make follows the first example and "Stores" in the README, with `allow`.
 * @type {import('../lib/adapter.mjs').Make}
 */
export function make(limit, perMs, maxKeys) {
  const limiter = createLimiter(tokenBucket({ limit, per: perMs }), {
    store: memoryStore({ maxKeys }),
  })
  return (key) => limiter.allow(key)
}
