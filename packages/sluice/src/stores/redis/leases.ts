import type { Figures } from '../../decision.ts'
import type { Answer } from './batch.ts'
import { createRecent } from './recent.ts'
import type { RedisRules } from './rule-set.ts'
import { leasable } from './twins/twins.ts'
import { decideOn, type View } from './view.ts'

export interface LeaseOptions {
  /** The most units taken ahead of time, for one key. */
  readonly units: number
  /** How long they may be held, in milliseconds. Default 1,000. */
  readonly leaseMs?: number
}

/** Units of a key that this node has taken, and may spend without asking. */
interface Lease {
  readonly view: View
  readonly nowUs: number
  readonly sentMs: number
  readonly untilMs: number
  /** The instant of Redis's clock at which a window ends, and the units with it; 0 for none. */
  readonly edgeUs: number
  left: number
  isIdle: boolean
}

/** How many units a key would have had a use for, as it seems. */
interface Demand {
  readonly units: number
  readonly seenMs: number
}

/** Keys whose demand is remembered. */
const MOST_KEYS = 10_000

/** Leases are spent or returned in this part of their time, so that all is done when it is over. */
const USABLE = 0.9

/** Leases are looked after this many times in their time. */
const LOOKS = 4

/**
 * Leases takes units of busy keys ahead of time, debited in Redis at once, so that most calls need
 * no trip. Whoever is not busy any more gives back what is left.
 */
export interface Leases {
  /** The figures of a decision from units that are held, spent if `spend` is set. */
  take(set: RedisRules, key: string, cost: number, spend: boolean): Figures | undefined
  /** How many units to take along with a call that has to go to Redis. */
  wish(set: RedisRules, key: string, cost: number): number
  /** What came of it. */
  note(key: string, asked: number, answer?: Answer): void
  /** Gives back what is held of a key. */
  giveBack(key: string): void
  /** Forgets what is held of a key, or of all: Redis has forgotten it as well. */
  drop(key?: string): void
  close(): Promise<void>
}

/** createLeases gives units back by `refund`, which is dropped from the instant `edgeUs` on. */
export function createLeases(
  { units, leaseMs }: Required<LeaseOptions>,
  refund: (set: RedisRules, key: string, cost: number, edgeUs: number) => Promise<unknown>,
): Leases {
  const held = new Map<string, Lease>()
  const asked = new Set<string>()
  const demands = createRecent<Demand>(MOST_KEYS)
  const returns = new Set<Promise<unknown>>()
  let timer: ReturnType<typeof setTimeout> | undefined

  function take(set: RedisRules, key: string, cost: number, spend: boolean): Figures | undefined {
    const lease = held.get(key)
    if (!lease || lease.view.set !== set || cost === 0 || lease.left < cost) return undefined
    const nowMs = performance.now()
    if (nowMs >= lease.untilMs) return undefined
    const nowUs = lease.nowUs + Math.floor((nowMs - lease.sentMs) * 1_000)
    const figures = decideOn(lease.view, cost, spend, nowUs)
    figures.source = 'lease'
    if (spend) {
      lease.left -= cost
      lease.isIdle = false
    }
    return figures
  }

  /** As many as last time if that was enough, else twice as many. */
  function wish(set: RedisRules, key: string, cost: number): number {
    if (cost === 0 || set.stateful.length === 0 || asked.has(key)) return 0
    const nowMs = performance.now()
    const demand = demands.get(key)
    const isBusy = demand !== undefined && nowMs - demand.seenMs < leaseMs
    const wanted = isBusy ? Math.min(units, Math.max(cost, 2 * demand.units)) : 0
    demands.set(key, { units: wanted, seenMs: nowMs })
    if (wanted > 0) asked.add(key)
    return wanted
  }

  function note(key: string, wanted: number, answer?: Answer): void {
    if (wanted > 0) asked.delete(key)
    if (!answer || answer.leased === 0) return
    giveBack(key)
    held.set(key, leaseOf(answer))
    arm()
  }

  function leaseOf({ view, nowUs, sentMs, leased }: Answer): Lease {
    const { set, states } = view
    const edges = set.stateful.flatMap((rule, i) =>
      leasable[rule.algorithm.name].edge ? [rule.algorithm.freshAtUs(states[i], 0, rule)] : [],
    )
    const edgeUs = edges.length > 0 ? Math.min(...edges) : 0
    const usableMs = Math.min(USABLE * leaseMs, edgeUs > 0 ? (edgeUs - nowUs) / 1_000 : leaseMs)
    // What is leased counts as unspent here, and is spent bit by bit.
    const own = { set, states: states.map((state) => state.slice()), blockUs: 0 }
    set.stateful.forEach((rule, i) => {
      rule.algorithm.refund(own.states[i], 0, rule, leased, nowUs)
    })
    const untilMs = sentMs + usableMs
    return { view: own, nowUs, sentMs, untilMs, edgeUs, left: leased, isIdle: false }
  }

  function giveBack(key: string): void {
    const lease = held.get(key)
    if (!lease) return
    held.delete(key)
    if (lease.left === 0) return
    const demand = demands.get(key)
    if (demand) {
      const used = Math.max(0, demand.units - lease.left)
      demands.set(key, { units: Math.ceil(used / 2), seenMs: demand.seenMs })
    }
    const returned = refund(lease.view.set, key, lease.left, lease.edgeUs).catch(() => {})
    returns.add(returned)
    void returned.then(() => returns.delete(returned))
  }

  /** Gives back what is over its time, or was not touched since the last look. */
  function look(): void {
    timer = undefined
    const nowMs = performance.now()
    for (const [key, lease] of held) {
      if (lease.isIdle || nowMs >= lease.untilMs) giveBack(key)
      else lease.isIdle = true
    }
    arm()
  }

  function arm(): void {
    if (timer !== undefined || held.size === 0) return
    timer = setTimeout(look, (USABLE * leaseMs) / LOOKS)
    // It is no reason to keep a process alive; nor is what it would give back.
    timer.unref?.()
  }

  return {
    take,
    wish,
    note,
    giveBack,
    drop(key) {
      if (key === undefined) held.clear()
      else held.delete(key)
    },
    async close() {
      clearTimeout(timer)
      for (const key of held.keys()) giveBack(key)
      await Promise.all(returns)
    },
  }
}
