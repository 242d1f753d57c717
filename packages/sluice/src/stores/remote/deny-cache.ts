import { type Cost, isSameCost } from '../../core/cost.ts'
import type { Decision } from '../../core/decision.ts'
import { copyRow, type OpenRow } from '../../rows/open-row.ts'
import type { JointSet } from '../joint/joint-set.ts'
import type { Request, RequestRow, RuleSet } from '../store.ts'
import { decideHere } from './act.ts'
import type { Trip } from './engine.ts'
import { decideJointHere } from './joint-act.ts'
import { createRecent } from './recent.ts'
import type { RemoteRules } from './remote-rules.ts'

/** DenyCacheOptions bound the cache of refusals. */
export interface DenyCacheOptions {
  /** The longest time a refusal is cached, in milliseconds. Default 2,000. */
  readonly maxMs?: number
  /** Maximum number of cached keys. Default 10,000. */
  readonly maxKeys?: number
}

/** A refusal, and until when it is valid, by `performance.now()`. */
interface Refusal {
  readonly set: RuleSet
  readonly cost: Cost
  /** The row of the key, or the row of each of its fields. */
  readonly rows: readonly OpenRow[]
  readonly names: readonly string[]
  readonly trip: Trip
  readonly untilMs: number
}

/**
 * DenyCache caches refusals: until its retry time, the same key and cost is refused without a round
 * trip.
 */
export interface DenyCache {
  /** Returns a refusal if a cached one still holds. */
  recall(set: RuleSet, key: string, cost: Cost): Decision | undefined
  /** Caches a refused check with its rows. Default for `rows`: the row that is open in the set. */
  note(request: Request, rows: readonly OpenRow[] | undefined, trip: Trip, waitMs: number): void
  /** Drops the refusals of a key, and of all keys that share one of `rows` with it. */
  drop(key: string, rows: readonly RequestRow[] | undefined): void
  clear(): void
}

/** createDenyCache creates an empty cache of refusals. */
export function createDenyCache({ maxMs, maxKeys }: Required<DenyCacheOptions>): DenyCache {
  const refusals = createRecent<Refusal>(maxKeys)
  /** When the refusals that involve a row were dropped, by `performance.now()`. */
  const drops = createRecent<number>(maxKeys)

  function isDropped({ names, trip }: Refusal): boolean {
    return names.some((name) => (drops.get(name) ?? 0) >= trip.sentMs)
  }

  return {
    recall(set, key, cost) {
      const refusal = refusals.get(key)
      if (!refusal || refusal.set !== set || !isSameCost(refusal.cost, cost)) return undefined
      const nowMs = performance.now()
      if (nowMs >= refusal.untilMs || isDropped(refusal)) return undefined
      // Count from when the trip was sent, so that the cache never refuses longer than the engine.
      const { rows, trip } = refusal
      if (refusal.names.length === 0) {
        return decideHere(set as RemoteRules, rows[0], trip, nowMs, cost, false, 'cache')
      }
      const atUs = trip.nowUs + Math.floor((nowMs - trip.sentMs) * 1_000)
      const decision = decideJointHere(set as JointSet, rows, cost, atUs)
      return decision.source === 'blocked' ? decision : { ...decision, source: 'cache' }
    },
    note({ set, key, cost, rows: own }, rows = [(set as RemoteRules).row], trip, waitMs) {
      const untilMs = trip.sentMs + Math.min(maxMs, waitMs)
      const names = own?.map(({ name }) => name) ?? []
      refusals.set(key, { set, cost, rows: rows.map(copyRow), names, trip, untilMs })
    },
    drop(key, rows) {
      refusals.delete(key)
      for (const { name } of rows ?? []) drops.set(name, performance.now())
    },
    clear() {
      refusals.clear()
      drops.clear()
    },
  }
}
