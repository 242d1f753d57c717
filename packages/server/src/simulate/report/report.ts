import type { Suggestion } from '../engine/suggest.ts'
import type { LineProblem } from '../log/read-log.ts'

/** Report is the result of a simulation; `--json` prints it. Shares are from 0 to 1. */
export interface Report {
  /** Increased when a field changes its meaning or is removed. */
  readonly version: 1
  readonly source: LogSource | ScenarioSource
  readonly traffic: Traffic
  readonly usage: readonly UsageReport[]
  readonly suggestions: readonly Suggestion[]
  readonly ruleSets: readonly RuleSetReport[]
}

/** LogSource describes the logs that were read. */
export interface LogSource {
  readonly kind: 'log'
  /** The files, each with its format and the fields in use. */
  readonly formats: readonly string[]
  /** Lines that are not empty, without the headers of CSV. */
  readonly lines: number
  readonly unreadable: number
  /** The first few unreadable lines. */
  readonly problems: readonly LineProblem[]
  /** Whether no time has a fraction of a second: requests of a second then seem simultaneous. */
  readonly wholeSeconds: boolean
  /** Requests that were reordered by time. */
  readonly reordered: number
  /** Requests too late to reorder, which count at the time of the one before. */
  readonly late: number
}

/** ScenarioSource is the scenario that was played. */
export interface ScenarioSource {
  readonly kind: 'scenario'
  readonly scenario: string
  readonly clients: number
  readonly ratePerSecond: number
  readonly forMs: number
  readonly seed: number
}

/** Traffic sums up all requests, without retries of a scenario. */
export interface Traffic {
  readonly requests: number
  readonly units: number
  readonly clients: number
  /** Requests of clients that are not tracked individually, because there are too many. */
  readonly untracked: number
  readonly startTime: string
  readonly endTime: string
  readonly spanMs: number
  readonly timeline: {
    readonly startTime: string
    readonly binMs: number
    readonly requests: number[]
  }
}

/** UsageReport has percentiles of the largest use of each client in one window of the clock. */
export interface UsageReport {
  readonly per: string
  readonly percentiles: readonly { readonly share: number; readonly use: number }[]
}

/** RuleSetReport is what one rule set would have done. `allowed + refused = requests`. */
export interface RuleSetReport {
  readonly name: string
  readonly requests: number
  readonly allowed: number
  readonly refused: number
  readonly refusedShare: number
  readonly units: number
  readonly refusedUnits: number
  /** Of `refused` those on routes in shadow mode, which refuse no request. */
  readonly shadowed: number
  /** Of `allowed` those on open routes, where nothing is counted. */
  readonly open: number
  /** Of `allowed` those that match no route, and get a 404 or 400. */
  readonly lost: number
  /** Settings that the simulation ignores: `allowList`, `denyList`. */
  readonly leftOut: readonly string[]
  readonly clients: number
  readonly refusedClients: number
  readonly refusedClientShare: number
  /** Allowed, but delayed by a leaky bucket. */
  readonly delayed: number
  readonly longestDelayMs: number
  /** Requests of a scenario that were retried after a refusal. */
  readonly retries: number
  /** If above 0, there were more clients than could be held, and the decisions are stricter. */
  readonly evictions: number
  readonly byRule: readonly { readonly rule: string; readonly refused: number }[]
  /** Empty if the log has no routes. */
  readonly byRoute: readonly RouteReport[]
  readonly byTier: readonly TierReport[]
  readonly top: readonly TopClient[]
  /** Refusals in the bins of `traffic.timeline`. */
  readonly timeline: readonly number[]
  /** The comparison with the outcomes in the log; undefined if it has none. */
  readonly change: Change | undefined
}

/** RouteReport counts the requests of a route of a configuration. */
export interface RouteReport {
  readonly route: string
  /** Whether it refuses, lets through what it would refuse, or counts nothing. */
  readonly mode: 'limited' | 'shadow' | 'open'
  readonly requests: number
  readonly units: number
  /** In shadow mode, what it would refuse. */
  readonly refused: number
}

/** TierReport counts a client under the tier of its first request. */
export interface TierReport {
  readonly tier: string
  readonly requests: number
  readonly refused: number
  readonly clients: number
  readonly refusedClients: number
}

/** TopClient is one of the most refused clients. */
export interface TopClient {
  readonly key: string
  readonly requests: number
  readonly refused: number
}

/** Change counts requests by their outcome in the log and in the simulation. */
export interface Change {
  readonly newlyRefused: number
  readonly newlyAllowed: number
  readonly stillRefused: number
  readonly stillAllowed: number
  /** Requests without an outcome in the log. */
  readonly unknown: number
}
