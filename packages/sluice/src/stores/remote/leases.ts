import type { Cost } from '../../core/cost.ts'
import type { Decision } from '../../core/decision.ts'
import { copyRow, type OpenRow } from '../../rows/open-row.ts'
import { decideHere } from './act.ts'
import type { Trip } from './engine.ts'
import { createRecent } from './recent.ts'
import type { RemoteRules } from './remote-rules.ts'

/** LeaseOptions bound the units that a node takes ahead of time. */
export interface LeaseOptions {
  /** The most units leased at a time for one key. */
  readonly units: number
  /** How long a node may hold them, in milliseconds. Default 1,000. */
  readonly leaseMs?: number
}

/** Units of a key that this node has leased and may spend without a round trip. */
interface Lease {
  readonly set: RemoteRules
  /** The key's row with only the units debited that were really spent. */
  readonly row: OpenRow
  readonly trip: Trip
  readonly untilMs: number
  /** The instant of the engine's clock from which unused units can no longer be returned. */
  readonly backUs: number
  readonly units: number
  left: number
  isIdle: boolean
}

/** A call in flight that asks for units, and what to do with them when it returns. */
interface Asked {
  readonly sinceMs: number
  fate: 'hold' | 'return' | 'drop'
}

/** The estimated demand of a key, in units. */
interface Demand {
  readonly units: number
  readonly seenMs: number
}

/** Maximum number of keys whose demand is remembered. */
const MOST_KEYS = 10_000

/**
 * Units are spent or returned within this part of `leaseMs`. Units leased before an interval and
 * returned in it can be leased again in it, so they count as held for twice as long as they are.
 */
const HELD = 1 / 2

/** Units are spent only within this part of the time held, so that the rest is returned in time. */
const USABLE = 0.75

/** How often leases are checked during the time in which they can be spent. */
const LOOKS = 4

/**
 * Leases takes units of busy keys ahead of time, so that most calls need no round trip. The store
 * debits leased units at once. When a key is no longer busy, its unused units are returned.
 */
export interface Leases {
  /** Decides from leased units, if there are enough, and spends them if `spend` is set. */
  take(set: RemoteRules, key: string, cost: Cost, spend: boolean): Decision | undefined
  /** Returns how many units to lease along with a call that needs a round trip. */
  wish(set: RemoteRules, key: string, cost: Cost): number
  /** Records that `leased` units, perhaps 0, were taken from the row that is open in the set. */
  note(set: RemoteRules, key: string, leased: number, trip: Trip): void
  /** Records that the call that asked for units has failed. */
  failed(key: string): void
  /** Returns the units of a key, held or in flight. */
  giveBack(key: string): void
  /** Drops the units of a key or of all keys, held or in flight: the store has removed their rows. */
  drop(key?: string): void
  close(): Promise<void>
}

/** createLeases returns units by `refund`, which the store ignores from the instant `backUs` on. */
export function createLeases(
  { units, leaseMs }: Required<LeaseOptions>,
  refund: (set: RemoteRules, key: string, cost: number, backUs: number) => Promise<unknown>,
): Leases {
  const held = new Map<string, Lease>()
  const asked = new Map<string, Asked>()
  const demands = createRecent<Demand>(MOST_KEYS)
  const returns = new Set<Promise<unknown>>()
  const heldMs = HELD * leaseMs
  let timer: ReturnType<typeof setTimeout> | undefined
  /** Called when no more calls are in flight. */
  let settled = () => {}

  function take(set: RemoteRules, key: string, cost: Cost, spend: boolean): Decision | undefined {
    const lease = held.get(key)
    if (!lease || typeof cost !== 'number' || lease.set !== set || cost === 0 || lease.left < cost)
      return undefined
    const nowMs = performance.now()
    if (nowMs >= lease.untilMs) return undefined
    if (spend) {
      lease.left -= cost
      lease.isIdle = false
    }
    return decideHere(set, lease.row, lease.trip, nowMs, cost, spend, 'lease')
  }

  /** Wishes for what the last lease used, or twice that lease if all was used; 0 for an idle key. */
  function wish(set: RemoteRules, key: string, cost: Cost): number {
    if (typeof cost !== 'number') return 0
    const nowMs = performance.now()
    const before = asked.get(key)
    if (cost === 0 || set.stateless) return 0
    if (before && nowMs - before.sinceMs < leaseMs) return 0
    const demand = demands.get(key)
    const isBusy = demand !== undefined && nowMs - demand.seenMs < leaseMs
    const wanted = isBusy ? Math.min(units, Math.max(cost, 2 * demand.units)) : 0
    demands.set(key, { units: wanted, seenMs: nowMs })
    if (wanted > 0) asked.set(key, { sinceMs: nowMs, fate: 'hold' })
    return wanted
  }

  function ended(key: string): Asked['fate'] {
    const fate = asked.get(key)?.fate ?? 'return'
    asked.delete(key)
    if (asked.size === 0) settled()
    return fate
  }

  function note(set: RemoteRules, key: string, leased: number, trip: Trip): void {
    const fate = ended(key)
    if (leased === 0 || fate === 'drop') return
    giveBackHeld(key)
    let backUs = trip.nowUs + heldMs * 1_000
    for (const { rule, at } of set.lines) {
      if (rule.algorithm.lease !== 'window') continue
      backUs = Math.min(backUs, rule.algorithm.freshAtUs(set.row.cells, at, rule))
    }
    const usableMs = Math.min(USABLE * heldMs, (backUs - trip.nowUs) / 1_000)
    const untilMs = trip.sentMs + usableMs
    const units = { units: leased, left: leased }
    held.set(key, { set, row: copyRow(set.row), trip, untilMs, backUs, ...units, isIdle: false })
    if (fate === 'return') giveBackHeld(key)
    arm()
  }

  function giveBackHeld(key: string): void {
    const lease = held.get(key)
    if (!lease) return
    held.delete(key)
    if (lease.left === 0) return
    const demand = demands.get(key)
    if (demand) {
      const used = lease.units - lease.left
      demands.set(key, { units: Math.ceil(used / 2), seenMs: demand.seenMs })
    }
    const returned = refund(lease.set, key, lease.left, lease.backUs).catch(() => {})
    returns.add(returned)
    void returned.then(() => returns.delete(returned))
  }

  /** Sets what to do with units in flight when they arrive. */
  function decree(fate: Asked['fate'], key?: string): void {
    for (const [each, call] of asked) if (key === undefined || each === key) call.fate = fate
  }

  /** Returns leases that have ended, or that were not used since the last check. */
  function look(): void {
    timer = undefined
    const nowMs = performance.now()
    for (const [key, lease] of held) {
      if (lease.isIdle || nowMs >= lease.untilMs) giveBackHeld(key)
      else lease.isIdle = true
    }
    arm()
  }

  function arm(): void {
    if (timer !== undefined || held.size === 0) return
    timer = setTimeout(look, (USABLE * heldMs) / LOOKS)
    // Unused units are no reason to keep the process alive.
    timer.unref?.()
  }

  return {
    take,
    wish,
    note,
    failed: (key) => void ended(key),
    giveBack(key) {
      decree('return', key)
      giveBackHeld(key)
    },
    drop(key) {
      decree('drop', key)
      if (key === undefined) held.clear()
      else held.delete(key)
    },
    async close() {
      decree('return')
      for (const key of held.keys()) giveBackHeld(key)
      if (asked.size > 0) {
        await new Promise<void>((resolve) => {
          settled = resolve
        })
      }
      await Promise.all(returns)
    },
  }
}
