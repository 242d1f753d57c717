import { SluiceError } from '../core/errors.ts'
import { sharedMap } from '../core/shared-map.ts'
import type { AsyncStore, Store } from '../stores/store.ts'

/** A name in use: the number of its limiters, and whether they share it. */
interface Use {
  readonly share: boolean | undefined
  limiters: number
}

/** The names in use, by owner of the rows. */
const inUse = sharedMap<object, Map<string, Use>>('limiter names')

/**
 * unusedName throws if another limiter on this store uses the name, unless both share it. It
 * returns a function that occupies the name, which returns a function that frees it.
 */
export function unusedName(store: Store | AsyncStore, name: string, share: boolean | undefined) {
  const owner = store.owner ?? store
  const rows = store.rowsOf?.(name) ?? name
  const names = inUse.get(owner) ?? new Map<string, Use>()
  const use = names.get(rows) ?? { share, limiters: 0 }
  if (use.limiters > 0 && !(share && use.share)) {
    throw new SluiceError(
      'SLUICE_STORE_NAME',
      `createLimiter: the name "${name}" is in use on this store, so both would count as ` +
        'one. Give each a `name` of its own, close() the other first, or pass `share: true` to both.',
    )
  }

  return () => {
    use.limiters += 1
    inUse.set(owner, names.set(rows, use))
    return () => {
      use.limiters -= 1
      if (use.limiters === 0) names.delete(rows)
    }
  }
}
