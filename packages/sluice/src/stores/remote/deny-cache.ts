import { type Cost, isSameCost } from '../../core/cost.ts'
import type { Decision } from '../../core/decision.ts'
import { copyRow, type OpenRow } from '../../rows/open-row.ts'
import { decideHere } from './act.ts'
import type { Trip } from './engine.ts'
import { createRecent } from './recent.ts'
import type { RemoteRules } from './remote-rules.ts'

export interface DenyCacheOptions {
  /** The longest a refusal is remembered, in milliseconds. Default 2,000. */
  readonly maxMs?: number
  /** Keys remembered at most. Default 10,000. */
  readonly maxKeys?: number
}

/** A refusal, and until when it holds by our clock. */
interface Refusal {
  readonly set: RemoteRules
  readonly cost: Cost
  readonly row: OpenRow
  readonly trip: Trip
  readonly untilMs: number
}

/**
 * DenyCache remembers refusals: the same key and cost is refused again without a trip, until the
 * time it was told to come back.
 */
export interface DenyCache {
  /** The decision, if a refusal still holds. */
  recall(set: RemoteRules, key: string, cost: Cost): Decision | undefined
  /** Remembers a refusal by the row that is open in the set. */
  note(set: RemoteRules, key: string, cost: Cost, trip: Trip, waitMs: number): void
  drop(key: string): void
  clear(): void
}

export function createDenyCache({ maxMs, maxKeys }: Required<DenyCacheOptions>): DenyCache {
  const refusals = createRecent<Refusal>(maxKeys)
  return {
    recall(set, key, cost) {
      const refusal = refusals.get(key)
      if (!refusal || refusal.set !== set || !isSameCost(refusal.cost, cost)) return undefined
      const nowMs = performance.now()
      if (nowMs >= refusal.untilMs) return undefined
      // From when it was sent: not a moment later than the engine would admit it.
      return decideHere(set, refusal.row, refusal.trip, nowMs, cost, false, 'cache')
    },
    note(set, key, cost, trip, waitMs) {
      const untilMs = trip.sentMs + Math.min(maxMs, waitMs)
      refusals.set(key, { set, cost, row: copyRow(set.row), trip, untilMs })
    },
    drop: refusals.delete,
    clear: refusals.clear,
  }
}
