import type { ShownRule } from '../shown-rule.ts'

/** LiveCount counts the decisions of a second with the same route, tier and deciding rule. */
export interface LiveCount {
  readonly route: string
  readonly tier: string
  readonly rule: string
  readonly allowed: number
  readonly refused: number
  /** Refused by a rule, but let through by a route in shadow mode. */
  readonly shadowed: number
}

/** LiveLatency is the time of decisions in milliseconds; percentiles are at most 19 % too high. */
export interface LiveLatency {
  /** How many decisions were timed. */
  readonly count: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly mostMs: number
}

/** LiveSecond sums up about a second. */
export interface LiveSecond {
  /** When it ended, in milliseconds since 1970. */
  readonly atMs: number
  /** Its length: in a busy process it may be longer than a second. */
  readonly forMs: number
  readonly counts: readonly LiveCount[]
  readonly latency: LiveLatency | null
  /** Decisions made without the store. */
  readonly storeless: number
  /** Whether the store was unavailable at its end. */
  readonly isAway: boolean
}

/** LiveKey is a key in a list of top keys. */
export interface LiveKey {
  readonly key: string
  readonly count: number
  /** How many of them were refused in shadow mode and let through. */
  readonly shadowed: number
  readonly error: number
  readonly route: string
  readonly tier: string
  readonly rule: string
  readonly lastMs: number
}

/** LiveTop are the most refused keys (`limited`), and those with the most requests (`talking`). */
export interface LiveTop {
  readonly limited: readonly LiveKey[]
  readonly talking: readonly LiveKey[]
}

/** LiveAway is an outage of the store; `toMs` is null while it lasts. */
export interface LiveAway {
  readonly fromMs: number
  readonly toMs: number | null
  readonly reason: string
}

/** LiveAbout is the part of the configuration that the dashboard shows. */
export interface LiveAbout {
  readonly version: string
  /** Tier → its rules. */
  readonly tiers: Readonly<Record<string, readonly ShownRule[]>>
  /** Route with its own rules → those rules. */
  readonly routes: Readonly<Record<string, readonly ShownRule[]>>
  readonly store: { readonly kind: string; readonly onFailure: string }
}

/** LiveChange is the event of a change of the configuration. */
export interface LiveChange extends LiveAbout {
  /** Whether the viewer may make changes. */
  readonly mayChange: boolean
}

/** LiveStart is the first event of a stream. */
export interface LiveStart extends LiveChange {
  /** The last seconds, the newest last. */
  readonly history: readonly LiveSecond[]
  readonly away: readonly LiveAway[]
}

/** LiveNews is the event of every second. */
export interface LiveNews extends LiveSecond, LiveTop {
  readonly away: readonly LiveAway[]
}

/** LiveDecision is a decision about a key, for display. */
export interface LiveDecision {
  readonly atMs: number
  readonly route: string
  readonly tier: string
  readonly outcome: 'allowed' | 'refused' | 'shadowed'
  /** The deciding rule, and what it had left. */
  readonly rule: string
  readonly remaining: number | null
  readonly cost: number
  readonly retryAfterMs: number
  readonly source: string
}

/** LiveKeyNews are decisions about the watched key, the oldest first. */
export interface LiveKeyNews {
  readonly key: string
  readonly decisions: readonly LiveDecision[]
  /** Decisions of this second beyond the number that is listed. */
  readonly leftOut: number
}
