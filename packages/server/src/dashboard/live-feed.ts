import { randomUUID } from 'node:crypto'
import { type Decided, type Outcome, outcomeOf } from '../decided.ts'
import { createTopKeys } from '../metrics/top-keys.ts'
import { createLatency } from './latency.ts'
import { createLiveCounts } from './live-counts.ts'
import type { LiveAway, LiveDecision, LiveKey, LiveSecond, LiveTop } from './live-event.ts'
import { createRecentRefusals } from './recent-refusals.ts'

/** LiveAsked is what somebody knows already, and wants to know besides. */
export interface LiveAsked {
  /** Process → the number of its last second that was seen. */
  readonly seen: Readonly<Record<string, number>>
  /** Keys whose decisions are wanted from now on; they are asked for every second. */
  readonly keys: readonly string[]
  /** The key whose last refusals are wanted; undefined for none. */
  readonly refusalsOf: string | undefined
}

/** LiveTold is what one process answers. */
export interface LiveTold extends LiveTop {
  /** Another one after a restart. */
  readonly process: string
  /** Those that were not seen yet, the newest last. */
  readonly seconds: readonly ToldSecond[]
  readonly away: readonly LiveAway[]
  readonly refusals: readonly LiveDecision[]
}

/** ToldSecond has a number, one higher than that before, and the decisions about watched keys. */
export interface ToldSecond extends LiveSecond {
  readonly number: number
  readonly keys: ReadonlyMap<string, KeyDecisions>
}

interface KeyDecisions {
  readonly decisions: LiveDecision[]
  leftOut: number
}

/** LiveFeed gathers what this process does, and remembers the last five minutes. */
export interface LiveFeed {
  decided(told: Decided): void
  /** Says that the store is away, and why, or that it is back. */
  degraded(reason: string | undefined): void
  tell(asked: LiveAsked): LiveTold
  /** Says whom to call at the end of each second. */
  onSecond(listener: () => void): void
  /** Ends a second. It happens by itself every second. */
  tick(): void
  close(): void
}

const SECONDS_KEPT = 300
const AWAY_KEPT = 20
/** More than are shown, because those of several processes are added up. */
const TOP_TOLD = 100
/** A key that was not asked for in so many seconds is watched no more. */
const WATCHED_SECONDS = 5
/** Decisions of a watched key that are shown of each second. */
const DECISIONS_SHOWN = 20
/** Decisions of a second that are looked at one by one; of those beyond, one in so many. */
const EACH_A_SECOND = 1_000
const ONE_IN = 16
const STORELESS = new Set(['local', 'open', 'closed'])

/** LiveFeedOptions: who is refused most is counted elsewhere already. */
export interface LiveFeedOptions {
  limited(count: number): readonly LiveKey[]
  nowMs?(): number
}

/**
 * createLiveFeed starts to gather. All decisions are counted by route, tier and rule. By key the
 * first thousand of a second are, and one in sixteen of the others, for sixteen.
 */
export function createLiveFeed({ limited, nowMs = Date.now }: LiveFeedOptions): LiveFeed {
  const liveCounts = createLiveCounts()
  const latency = createLatency()
  const talking = createTopKeys()
  const refusals = createRecentRefusals()
  const history: ToldSecond[] = []
  const away: LiveAway[] = []
  const process = randomUUID()
  /** Key → the number of the second until which it is watched. */
  const watched = new Map<string, number>()
  let keys = new Map<string, KeyDecisions>()
  let listener = () => {}
  let number = 0
  let isAway = false
  let storeless = 0
  let seen = 0
  let lastMs = nowMs()

  function tick(): void {
    const atMs = nowMs()
    const forMs = atMs - lastMs
    const counts = liveCounts.take()
    number += 1
    history.push({ number, atMs, forMs, counts, latency: latency.take(), storeless, isAway, keys })
    if (history.length > SECONDS_KEPT) history.shift()
    const old = history.at(-1 - WATCHED_SECONDS)
    if (old && old.keys.size > 0) history[history.indexOf(old)] = { ...old, keys: new Map() }
    for (const [key, until] of watched) if (until < number) watched.delete(key)
    keys = new Map()
    lastMs = atMs
    storeless = 0
    seen = 0
    listener()
  }

  const timer = setInterval(tick, 1_000).unref()
  return {
    decided(told) {
      const { route, tier, key, decision, seconds } = told
      const outcome = outcomeOf(told)
      liveCounts.count(route, tier, decision.rule, outcome)
      if (seconds !== undefined) latency.add(seconds)
      if (STORELESS.has(decision.source)) storeless += 1
      seen += 1
      const units = seen <= EACH_A_SECOND ? 1 : Math.random() < 1 / ONE_IN ? ONE_IN : 0
      if (units > 0) talking.count(key, units, { route, tier, rule: decision.rule })
      const isWatched = watched.size > 0 && watched.has(key)
      const isNoted = units > 0 && !decision.allowed
      if (!isWatched && !isNoted) return
      const shown = shownOf(told, outcome, nowMs())
      if (isNoted) refusals.note(key, shown)
      if (!isWatched) return
      const about = keys.get(key) ?? { decisions: [], leftOut: 0 }
      keys.set(key, about)
      if (about.decisions.length < DECISIONS_SHOWN) about.decisions.push(shown)
      else about.leftOut += 1
    },
    degraded(reason) {
      const last = away.at(-1)
      isAway = reason !== undefined
      if (reason !== undefined && last?.toMs !== null) {
        away.push({ fromMs: nowMs(), toMs: null, reason })
        if (away.length > AWAY_KEPT) away.shift()
      } else if (reason === undefined && last?.toMs === null) {
        away[away.length - 1] = { ...last, toMs: nowMs() }
      }
    },
    tell(asked) {
      for (const key of asked.keys) watched.set(key, number + WATCHED_SECONDS)
      const { refusalsOf } = asked
      return {
        process,
        seconds: history.filter((second) => second.number > (asked.seen[process] ?? 0)),
        limited: limited(TOP_TOLD),
        talking: talking.top(TOP_TOLD),
        away,
        refusals: refusalsOf === undefined ? [] : refusals.of(refusalsOf),
      }
    },
    onSecond(call) {
      listener = call
    },
    tick,
    close: () => clearInterval(timer),
  }
}

/** The deciding rule's own figures: those of the decision are of all rules. */
function shownOf(
  { route, tier, cost, decision }: Decided,
  outcome: Outcome,
  atMs: number,
): LiveDecision {
  const { rule, rules, retryAfterMs, source } = decision
  const remaining = rules.find((each) => each.rule === rule)?.remaining ?? decision.remaining
  return { atMs, route, tier, outcome, rule, remaining, cost, retryAfterMs, source }
}
