/** Calls registers functions by name, such as all callers that wait for one signal. */
export interface Calls<Name, Value = void> {
  has(name: Name): boolean
  /** Registers `call` until the returned function is called. */
  add(name: Name, call: (value: Value) => void): () => void
  /** Calls all functions of a name. */
  run(name: Name, value: Value): void
  runAll(value: Value): void
}

/** createCalls creates an empty registry. */
export function createCalls<Name, Value = void>(): Calls<Name, Value> {
  const byName = new Map<Name, Set<(value: Value) => void>>()

  function run(name: Name, value: Value): void {
    for (const call of byName.get(name) ?? []) call(value)
  }

  return {
    has: (name) => byName.has(name),
    add(name, call) {
      const calls = byName.get(name) ?? new Set()
      byName.set(name, calls.add(call))
      return () => {
        calls.delete(call)
        if (calls.size === 0) byName.delete(name)
      }
    },
    run,
    runAll(value) {
      for (const name of byName.keys()) run(name, value)
    },
  }
}
