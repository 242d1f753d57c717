import type { Outcome } from '../decided.ts'
import { OTHER } from '../metrics/quick-metrics.ts'
import type { LiveCount } from './live-event.ts'

/** LiveCounts count decisions by route, tier and rule until they are taken. */
export interface LiveCounts {
  count(route: string, tier: string, rule: string, outcome: Outcome): void
  /** The counts since the last call. */
  take(): LiveCount[]
}

type Writable = { -readonly [Name in keyof LiveCount]: LiveCount[Name] }

/**
 * createLiveCounts counts the first `most` combinations between two readings apart; all others are
 * `other`. Nested maps, because joining three names would take longer than looking up each.
 */
export function createLiveCounts(most = 200): LiveCounts {
  let byRoute = new Map<string, Map<string, Map<string, Writable>>>()
  let counts: Writable[] = []
  let other: Writable | undefined

  function add(route: string, tier: string, rule: string): Writable {
    const count = { route, tier, rule, allowed: 0, refused: 0, shadowed: 0 }
    counts.push(count)
    return count
  }

  function enter(route: string, tier: string, rule: string): Writable {
    if (counts.length >= most) {
      other ??= add(OTHER, OTHER, OTHER)
      return other
    }
    const byTier = byRoute.get(route) ?? new Map<string, Map<string, Writable>>()
    const byRule = byTier.get(tier) ?? new Map<string, Writable>()
    const count = add(route, tier, rule)
    byRoute.set(route, byTier)
    byTier.set(tier, byRule)
    byRule.set(rule, count)
    return count
  }

  return {
    count(route, tier, rule, outcome) {
      const known = byRoute.get(route)?.get(tier)?.get(rule) ?? enter(route, tier, rule)
      known[outcome] += 1
    },
    take() {
      const taken = counts
      byRoute = new Map()
      counts = []
      other = undefined
      return taken
    },
  }
}
