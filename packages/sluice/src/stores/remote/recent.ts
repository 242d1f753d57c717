/** Recent is a bounded map of the values that were set last. It evicts the older half as a whole. */
export interface Recent<Value> {
  get(key: string): Value | undefined
  set(key: string, value: Value): void
  delete(key: string): void
  clear(): void
}

/** createRecent creates a map of at most `most` values. */
export function createRecent<Value>(most: number): Recent<Value> {
  const half = Math.ceil(most / 2)
  let young = new Map<string, Value>()
  let old = new Map<string, Value>()
  return {
    get: (key) => young.get(key) ?? old.get(key),
    set(key, value) {
      old.delete(key)
      if (young.size >= half && !young.has(key)) {
        old = young
        young = new Map()
      }
      young.set(key, value)
    },
    delete(key) {
      young.delete(key)
      old.delete(key)
    },
    clear() {
      young.clear()
      old.clear()
    },
  }
}
