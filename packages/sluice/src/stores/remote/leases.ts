import type { Cost } from '../../core/cost.ts'
import type { Decision } from '../../core/decision.ts'
import { copyRow, type OpenRow } from '../../rows/open-row.ts'
import { decideHere } from './act.ts'
import type { Trip } from './engine.ts'
import { createRecent } from './recent.ts'
import type { RemoteRules } from './remote-rules.ts'

/** LeaseOptions say how many units are taken ahead of time, and for how long. */
export interface LeaseOptions {
  /** The most units taken ahead of time, for one key. */
  readonly units: number
  /** How long they may be held, in milliseconds. Default 1,000. */
  readonly leaseMs?: number
}

/** Units of a key that this node has taken, and may spend without asking. */
interface Lease {
  readonly set: RemoteRules
  /** The row as if only what was really spent were debited. */
  readonly row: OpenRow
  readonly trip: Trip
  readonly untilMs: number
  /** The instant of the engine's clock from which on nothing is given back. */
  readonly backUs: number
  readonly units: number
  left: number
  isIdle: boolean
}

/** A call under way that is to bring units, and what is to become of them then. */
interface Asked {
  readonly sinceMs: number
  fate: 'hold' | 'return' | 'drop'
}

/** How many units a key would have had a use for, as it seems. */
interface Demand {
  readonly units: number
  readonly seenMs: number
}

/** Keys whose demand is remembered. */
const MOST_KEYS = 10_000

/**
 * Units are spent or back after this part of `leaseMs`. What was taken before an interval, and given
 * back in it, can be taken again in it: units count as held for twice as long as they are.
 */
const HELD = 1 / 2

/** They are spent in this part of that, so that what is left is back in time. */
const USABLE = 0.75

/** Leases are looked after this many times in their time. */
const LOOKS = 4

/**
 * Leases takes units of busy keys ahead of time, debited in the store at once, so that most calls need
 * no trip. Whoever is not busy any more gives back what is left.
 */
export interface Leases {
  /** Decides from units that are held, if there are enough; they are spent if `spend` is set. */
  take(set: RemoteRules, key: string, cost: Cost, spend: boolean): Decision | undefined
  /** How many units to take along with a call that needs a trip. */
  wish(set: RemoteRules, key: string, cost: Cost): number
  /** They were taken: `leased` of them, perhaps 0, from the row that is open in the set. */
  note(set: RemoteRules, key: string, leased: number, trip: Trip): void
  /** The call that was to take them has failed. */
  failed(key: string): void
  /** Gives back what is held of a key, or on its way. */
  giveBack(key: string): void
  /** Forgets what is held of a key, or of all, or on its way: the store has forgotten it as well. */
  drop(key?: string): void
  close(): Promise<void>
}

/** createLeases gives units back by `refund`, which is dropped from the instant `backUs` on. */
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
  /** Called when no call is under way any more. */
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

  /** As many as last time if that was enough, else twice as many. */
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

  /** What is still on its way meets the same fate when it comes. */
  function decree(fate: Asked['fate'], key?: string): void {
    for (const [each, call] of asked) if (key === undefined || each === key) call.fate = fate
  }

  /** Gives back what is over its time, or was not touched since the last look. */
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
    // It is no reason to keep a process alive; nor is what it would give back.
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
