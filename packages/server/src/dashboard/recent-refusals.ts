import { ownCopy } from '../metrics/top-keys.ts'
import type { LiveDecision } from './live-event.ts'

/** RecentRefusals remembers the last refusals of the keys that were refused last. */
export interface RecentRefusals {
  note(key: string, refusal: LiveDecision): void
  /** The oldest first. */
  of(key: string): readonly LiveDecision[]
}

const MOST_KEYS = 1_000
const MOST_EACH = 10

/**
 * createRecentRefusals keeps ten refusals of each of a thousand keys: a key that is refused all the
 * time evicts its own refusals only. When full, the key whose last refusal is oldest is evicted.
 */
export function createRecentRefusals(mostKeys = MOST_KEYS): RecentRefusals {
  const byKey = new Map<string, LiveDecision[]>()
  return {
    note(key, refusal) {
      const known = byKey.get(key)
      if (known) {
        known.push(refusal)
        if (known.length > MOST_EACH) known.shift()
        byKey.delete(key)
        byKey.set(key, known)
        return
      }
      if (byKey.size >= mostKeys) {
        const [oldest] = byKey.keys()
        byKey.delete(oldest)
      }
      byKey.set(ownCopy(key), [refusal])
    },
    of: (key) => byKey.get(key) ?? [],
  }
}
