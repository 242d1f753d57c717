import type { LogRequest } from '../log/request.ts'
import type { Change, RouteReport, RuleSetReport, TierReport, TopClient } from '../report/report.ts'
import type { Clients } from './clients.ts'
import { createNumbers } from './numbers.ts'
import type { Place, Proposal, Verdict } from './proposal.ts'

/** Tally counts the decisions of one rule set. */
export interface Tally {
  /** `client` is its number, or -1. */
  count(request: LogRequest, client: number, verdict: Verdict): void
  report(clients: Clients, top: number, timeline: readonly number[]): RuleSetReport
}

/** The largest number of tiers counted apart; a log may name any number of them. */
const MOST_TIERS = 100
const OTHER_TIERS = 'other tiers'
const NO_TIER = 'no tier'

type Writable<T> = { -readonly [name in keyof T]: T[name] }

/** createTally takes 8 bytes per client, and 4 with tiers, besides the states of the rule set. */
export function createTally(set: Proposal): Tally {
  const byRule = new Map<string, number>()
  const byRoute = new Map<string, Writable<RouteReport>>()
  const tiers = new Map<string, number>()
  const tierCounts: { requests: number; refused: number }[] = []
  const requestsOf = createNumbers()
  const refusedOf = createNumbers()
  /** The number of the tier of a client's first request. */
  const tierOf = createNumbers()
  const change = { newlyRefused: 0, newlyAllowed: 0, stillRefused: 0, stillAllowed: 0, unknown: 0 }
  let requests = 0
  let refused = 0
  let units = 0
  let refusedUnits = 0
  let shadowed = 0
  let open = 0
  let lost = 0
  let delayed = 0
  let longestDelayMs = 0
  let retries = 0

  function tierNumber(name: string): number {
    const found = tiers.get(name)
    if (found !== undefined) return found
    if (tiers.size >= MOST_TIERS && name !== OTHER_TIERS) return tierNumber(OTHER_TIERS)
    tierCounts.push({ requests: 0, refused: 0 })
    tiers.set(name, tierCounts.length - 1)
    return tierCounts.length - 1
  }

  function countRoute({ route, mode, cost }: Place, allowed: boolean): void {
    if (route === undefined || mode === 'lost') return
    let of = byRoute.get(route)
    if (!of) {
      of = { route, mode, requests: 0, units: 0, refused: 0 }
      byRoute.set(route, of)
    }
    of.requests += 1
    of.units += cost
    if (!allowed) of.refused += 1
  }

  /** Compares with the outcome in the log; a route in shadow mode lets every request through. */
  function countChange({ outcome }: LogRequest, allowed: boolean): void {
    if (outcome === undefined) change.unknown += 1
    else if (outcome === 'refused') change[allowed ? 'newlyAllowed' : 'stillRefused'] += 1
    else change[allowed ? 'stillAllowed' : 'newlyRefused'] += 1
  }

  function tierReports(clients: Clients): TierReport[] {
    const reports = [...tiers].map(([tier, number]) => ({
      tier,
      ...tierCounts[number],
      clients: 0,
      refusedClients: 0,
    }))
    for (let i = 0; i < clients.size(); i += 1) {
      const report = reports[tierOf.get(i)]
      if (!report || requestsOf.get(i) === 0) continue
      report.clients += 1
      if (refusedOf.get(i) > 0) report.refusedClients += 1
    }
    // Without tiers there is nothing to count.
    if (reports.length === 1 && reports[0].tier === NO_TIER) return []
    return reports.sort((a, b) => b.requests - a.requests)
  }

  return {
    count(request, client, { allowed, delayMs, rule }) {
      const place = set.placeOf(request)
      const { cost, mode } = place
      const tier = tierNumber(place.tier ?? NO_TIER)
      requests += 1
      units += cost
      if (request.only >= 0) retries += 1
      tierCounts[tier].requests += 1
      countRoute(place, allowed)
      countChange(request, allowed || mode === 'shadow')
      if (mode === 'open') open += 1
      if (mode === 'lost') lost += 1
      if (client >= 0) {
        // The first tier is number 0, the initial value, and often the only one.
        if (tier > 0 && requestsOf.get(client) === 0) tierOf.set(client, tier)
        requestsOf.add(client, 1)
      }
      if (delayMs > 0 && mode !== 'shadow') {
        delayed += 1
        if (delayMs > longestDelayMs) longestDelayMs = delayMs
      }
      if (allowed) return
      refused += 1
      refusedUnits += cost
      if (mode === 'shadow') shadowed += 1
      tierCounts[tier].refused += 1
      byRule.set(rule, (byRule.get(rule) ?? 0) + 1)
      if (client >= 0) refusedOf.add(client, 1)
    },

    report(clients, top, timeline) {
      const { count, first } = mostRefused(clients, requestsOf.get, refusedOf.get, top)
      return {
        name: set.name,
        requests,
        allowed: requests - refused,
        refused,
        refusedShare: share(refused, requests),
        units,
        refusedUnits,
        shadowed,
        open,
        lost,
        leftOut: set.leftOut,
        clients: clients.size(),
        refusedClients: count,
        refusedClientShare: share(count, clients.size()),
        delayed,
        longestDelayMs,
        retries,
        evictions: set.evictions(),
        byRule: [...byRule]
          .map(([rule, refused]) => ({ rule, refused }))
          .sort((a, b) => b.refused - a.refused),
        byRoute: [...byRoute.values()].sort((a, b) => b.requests - a.requests),
        byTier: tierReports(clients),
        top: first,
        timeline,
        change: change.unknown === requests ? undefined : ({ ...change } satisfies Change),
      }
    },
  }
}

/** A part of a whole; 0 if the whole is 0. */
function share(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole
}

function mostRefused(
  clients: Clients,
  requestsOf: (client: number) => number,
  refusedOf: (client: number) => number,
  top: number,
): { count: number; first: TopClient[] } {
  let count = 0
  let first: number[] = []
  const sorted = () => first.sort((a, b) => refusedOf(b) - refusedOf(a) || a - b).slice(0, top)
  for (let i = 0; i < clients.size(); i += 1) {
    if (refusedOf(i) === 0) continue
    count += 1
    first.push(i)
    if (first.length > 2 * top + 1_000) first = sorted()
  }
  const shown = sorted().map((i) => ({
    key: clients.keyOf(i),
    requests: requestsOf(i),
    refused: refusedOf(i),
  }))
  return { count, first: shown }
}
