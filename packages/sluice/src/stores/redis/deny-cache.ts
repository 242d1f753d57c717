import type { Trip } from './batch.ts'
import { createRecent } from './recent.ts'
import type { RedisRules } from './rule-set.ts'
import { copyOf, decideOn, type View } from './view.ts'

export interface DenyCacheOptions {
  /** The longest a refusal is remembered, in milliseconds. Default 2,000. */
  readonly maxMs?: number
  /** Keys remembered at most. Default 10,000. */
  readonly maxKeys?: number
}

/** A refusal, and until when it holds by our clock. */
interface Refusal {
  readonly set: RedisRules
  readonly cost: number
  readonly view: View
  readonly trip: Trip
  readonly untilMs: number
}

/**
 * DenyCache remembers refusals: the same key and cost is refused again without a trip, until the
 * time it was told to come back.
 */
export interface DenyCache {
  /** Decides into the set's readings, if a refusal still holds. */
  recall(set: RedisRules, key: string, cost: number): boolean
  note(set: RedisRules, key: string, cost: number, view: View, trip: Trip, waitMs: number): void
  drop(key: string): void
  clear(): void
}

export function createDenyCache({ maxMs, maxKeys }: Required<DenyCacheOptions>): DenyCache {
  const refusals = createRecent<Refusal>(maxKeys)
  return {
    recall(set, key, cost) {
      const refusal = refusals.get(key)
      if (!refusal || refusal.cost !== cost || refusal.set !== set) return false
      const nowMs = performance.now()
      if (nowMs >= refusal.untilMs) return false
      const { view, trip } = refusal
      // From when it was sent: not a moment later than Redis would admit it.
      const elapsedUs = Math.floor((nowMs - trip.sentMs) * 1_000)
      decideOn(set, view, cost, false, trip.nowUs + elapsedUs)
      return true
    },
    note(set, key, cost, view, trip, waitMs) {
      const untilMs = trip.sentMs + Math.min(maxMs, waitMs)
      refusals.set(key, { set, cost, view: copyOf(view), trip, untilMs })
    },
    drop: refusals.delete,
    clear: refusals.clear,
  }
}
