import { TokenBucket } from 'limiter'

/**
 * make follows "Reject instead of waiting" (`tryRemoveTokens`) and "Create and reuse a limiter for
 * each resource" in the README. A TokenBucket rather than a RateLimiter, since it reads the clock
 * once and not twice; it starts empty, so it is filled the way RateLimiter fills its own.
 * @type {import('../lib/adapter.mjs').Make}
 */
export function make(limit, perMs) {
  const buckets = new Map()
  return (key) => {
    let bucket = buckets.get(key)
    if (bucket === undefined) {
      bucket = new TokenBucket({ bucketSize: limit, tokensPerInterval: limit, interval: perMs })
      bucket.content = limit
      buckets.set(key, bucket)
    }
    return bucket.tryRemoveTokens(1)
  }
}
