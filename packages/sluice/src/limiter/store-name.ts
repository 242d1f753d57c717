import { SluiceError } from '../core/errors.ts'
import type { AsyncStore, Store } from '../stores/store.ts'

/** A name in use: by how many limiters, and whether they share it. */
interface Use {
  readonly share: boolean
  limiters: number
}

/** The names in use, by what keeps the rows. Several copies of the library in a process have one. */
const inUse: unique symbol = Symbol.for('sluice.names') as never

type Registry = { [inUse]?: WeakMap<object, Map<string, Use>> }

/**
 * unusedName throws if another limiter on this store uses the name, unless both share it. Call what it
 * returns to use the name, and what that returns to free it.
 */
export function unusedName(store: Store | AsyncStore, name: string, share: boolean) {
  const { owner = store } = store
  const registry = globalThis as Registry
  registry[inUse] ??= new WeakMap()
  const names = registry[inUse].get(owner) ?? new Map<string, Use>()
  const rows = store.rowsOf?.(name) ?? name
  const use = names.get(rows) ?? { share, limiters: 0 }
  if (use.limiters > 0 && !(share && use.share)) throw taken(name)

  return () => {
    use.limiters += 1
    registry[inUse]!.set(owner, names.set(rows, use))
    return () => {
      use.limiters -= 1
      if (use.limiters === 0) names.delete(rows)
    }
  }
}

function taken(name: string): SluiceError {
  const own = name === 'default' ? ' (a limiter without one is called "default")' : ''
  return new SluiceError(
    'SLUICE_STORE_NAME',
    `createLimiter: another limiter on this store is called "${name}", so both would count as one. ` +
      `Give each a \`name\` of its own${own}, close() the one that is replaced, or pass ` +
      '`share: true` to both if they are to count together.',
  )
}
