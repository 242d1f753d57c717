import type { ShownRule } from '../shown-rule.ts'

/** LiveCount is how many decisions of a second had route, tier and deciding rule in common. */
export interface LiveCount {
  readonly route: string
  readonly tier: string
  readonly rule: string
  readonly allowed: number
  readonly refused: number
  /** Refused by a route in shadow mode, and let through. */
  readonly shadowed: number
}

/** LiveLatency is how long decisions took, in milliseconds; percentiles are at most 19 % too high. */
export interface LiveLatency {
  /** How many were timed. */
  readonly count: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly mostMs: number
}

/** LiveSecond is what happened in about a second. */
export interface LiveSecond {
  /** When it ended, in milliseconds since 1970. */
  readonly atMs: number
  /** How long it was: a busy process is late. */
  readonly forMs: number
  readonly counts: readonly LiveCount[]
  readonly latency: LiveLatency | null
  /** Decisions that were made without the store. */
  readonly storeless: number
  /** Whether the store was away at its end. */
  readonly isAway: boolean
}

/** LiveKey is a key near the top of a list. */
export interface LiveKey {
  readonly key: string
  readonly count: number
  /** How many of them were refused in shadow mode, and let through. */
  readonly shadowed: number
  readonly error: number
  readonly route: string
  readonly tier: string
  readonly rule: string
  readonly lastMs: number
}

/** LiveTop are the keys that are refused most, and those that ask most. */
export interface LiveTop {
  readonly limited: readonly LiveKey[]
  readonly talking: readonly LiveKey[]
}

/** LiveAway is a time without the store; `toMs` is null while it lasts. */
export interface LiveAway {
  readonly fromMs: number
  readonly toMs: number | null
  readonly reason: string
}

/** LiveAbout is what is configured. */
export interface LiveAbout {
  readonly version: string
  /** Tier → its rules. */
  readonly tiers: Readonly<Record<string, readonly ShownRule[]>>
  /** Route with rules of its own → those. */
  readonly routes: Readonly<Record<string, readonly ShownRule[]>>
  readonly store: { readonly kind: string; readonly onFailure: string }
}

/** LiveChange is the event of a change of the configuration. */
export interface LiveChange extends LiveAbout {
  /** Whether the one who watches may change something. */
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

/** LiveDecision is a decision about a key, for people. */
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

/** LiveKeyNews are decisions about the key that is watched, the oldest first. */
export interface LiveKeyNews {
  readonly key: string
  readonly decisions: readonly LiveDecision[]
  /** Decisions of this second that are not listed, because there were too many. */
  readonly leftOut: number
}
