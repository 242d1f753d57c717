import * as sluice from 'sluice'

/** skip is the reason not to measure it: older builds have no compactStore. */
export const skip =
  'compactStore' in sluice ? undefined : 'this build of sluice exports no compactStore'

/**
 * make follows the first example and "Stores" in the README, with `allow`.
 * @type {import('../lib/adapter.mjs').Make}
 */
export function make(limit, perMs, maxKeys) {
  const limiter = sluice.createLimiter(sluice.tokenBucket({ limit, per: perMs }), {
    store: sluice.compactStore({ maxKeys }),
  })
  return (key) => limiter.allow(key)
}
