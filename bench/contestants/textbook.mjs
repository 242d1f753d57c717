/**
 * make is the token bucket of tutorials: an object per key in a Map, refilled at each call.
 * @type {import('../lib/adapter.mjs').Make}
 */
export function make(limit, perMs) {
  const buckets = new Map()
  const perMsRate = limit / perMs
  return (key) => {
    const nowMs = Date.now()
    let bucket = buckets.get(key)
    if (bucket === undefined) {
      bucket = { tokens: limit, atMs: nowMs }
      buckets.set(key, bucket)
    }
    bucket.tokens = Math.min(limit, bucket.tokens + (nowMs - bucket.atMs) * perMsRate)
    bucket.atMs = nowMs
    if (bucket.tokens < 1) return false
    bucket.tokens -= 1
    return true
  }
}
