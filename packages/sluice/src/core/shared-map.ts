/**
 * sharedMap returns the map of a name that all loaded copies of the library share. A program that
 * uses both `import` and `require` has two copies, and passes objects of one to the other. The
 * meaning of the values must never change under the same name.
 */
export function sharedMap<K extends object, V>(name: string): WeakMap<K, V> {
  const everywhere = globalThis as { [at: symbol]: WeakMap<K, V> | undefined }
  const at = Symbol.for(`sluice.${name}`)
  everywhere[at] ??= new WeakMap()
  return everywhere[at]
}
