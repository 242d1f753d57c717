/**
 * sharedMap is what the library remembers of objects under a name, in one map for all copies of the
 * library: a program that uses both `import` and `require` has loaded two, and hands objects of one to
 * the other. What a value means must never change under the same name.
 */
export function sharedMap<K extends object, V>(name: string): WeakMap<K, V> {
  const everywhere = globalThis as { [at: symbol]: WeakMap<K, V> | undefined }
  const at = Symbol.for(`sluice.${name}`)
  everywhere[at] ??= new WeakMap()
  return everywhere[at]
}
