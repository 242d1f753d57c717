/**
 * make counts in a Map and admits everything: the minimum work of any limiter on a Map.
 * @type {import('../lib/adapter.mjs').Make}
 */
export function make() {
  const counts = new Map()
  return (key) => {
    counts.set(key, (counts.get(key) ?? 0) + 1)
    return true
  }
}
