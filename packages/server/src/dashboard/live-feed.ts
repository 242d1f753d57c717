import { randomUUID } from 'node:crypto'
import { type Decided, type Outcome, outcomeOf } from '../decided.ts'
import { createTopKeys } from '../metrics/top-keys.ts'
import { createLatency } from './latency.ts'
import { createLiveCounts } from './live-counts.ts'
import type { LiveAway, LiveDecision, LiveKey, LiveSecond, LiveTop } from './live-event.ts'
import { createRecentRefusals } from './recent-refusals.ts'

/** LiveAsked is what a hub has seen, and what it asks for in addition. */
export interface LiveAsked {
  /** Process → the number of the last second seen. */
  readonly seen: Readonly<Record<string, number>>
  /** Keys whose decisions are wanted; the request is repeated every second. */
  readonly keys: readonly string[]
  /** The key whose last refusals are wanted; undefined for none. */
  readonly refusalsOf: string | undefined
}

/** LiveTold is the answer of one process. */
export interface LiveTold extends LiveTop {
  /** A random id, new after a restart. */
  readonly process: string
  /** The seconds not seen yet, the newest last. */
  readonly seconds: readonly ToldSecond[]
  readonly away: readonly LiveAway[]
  readonly refusals: readonly LiveDecision[]
}

/** ToldSecond is numbered consecutively, and has the decisions about watched keys. */
export interface ToldSecond extends LiveSecond {
  readonly number: number
  readonly keys: ReadonlyMap<string, KeyDecisions>
}

interface KeyDecisions {
  readonly decisions: LiveDecision[]
  leftOut: number
}

/** LiveFeed records the decisions of this process, and keeps the last five minutes. */
export interface LiveFeed {
  decided(event: Decided): void
  /** The store is unavailable, for this reason; undefined when it has recovered. */
  degraded(reason: string | undefined): void
  tell(asked: LiveAsked): LiveTold
  /** Sets the listener that is called at the end of each second. */
  onSecond(listener: () => void): void
  /** Ends a second; a timer calls it every second. */
  tick(): void
  close(): void
}

const SECONDS_KEPT = 300
const AWAY_KEPT = 20
/** More than are shown, because the lists of several processes are joined. */
const TOP_TOLD = 100
/** A key is no longer watched when it was not requested for this many seconds. */
const WATCHED_SECONDS = 5
/** The largest number of decisions about a watched key per second. */
const DECISIONS_SHOWN = 20
/** How many decisions of a second are counted by key; of the others, one in `ONE_IN`. */
const EACH_A_SECOND = 1_000
const ONE_IN = 16
const STORELESS = new Set(['local', 'open', 'closed'])

/** LiveFeedOptions: `limited` lists the most refused keys, which are counted elsewhere. */
export interface LiveFeedOptions {
  limited(count: number): readonly LiveKey[]
  nowMs?(): number
}

/**
 * createLiveFeed starts recording. All decisions are counted by route, tier and rule. By key the
 * first thousand of a second are counted, and a sample of the others: one in sixteen, as sixteen.
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
    decided(event) {
      const { route, tier, key, decision, seconds } = event
      const outcome = outcomeOf(event)
      liveCounts.count(route, tier, decision.rule, outcome)
      if (seconds !== undefined) latency.add(seconds)
      if (STORELESS.has(decision.source)) storeless += 1
      seen += 1
      const units = seen <= EACH_A_SECOND ? 1 : Math.random() < 1 / ONE_IN ? ONE_IN : 0
      if (units > 0) talking.count(key, units, { route, tier, rule: decision.rule })
      const isWatched = watched.size > 0 && watched.has(key)
      const isNoted = units > 0 && !decision.allowed
      if (!isWatched && !isNoted) return
      const shown = shownOf(event, outcome, nowMs())
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

/** Shows what the deciding rule has left; `decision.remaining` may be that of another rule. */
function shownOf(
  { route, tier, cost, decision }: Decided,
  outcome: Outcome,
  atMs: number,
): LiveDecision {
  const { rule, rules, retryAfterMs, source } = decision
  const remaining = rules.find((each) => each.rule === rule)?.remaining ?? decision.remaining
  return { atMs, route, tier, outcome, rule, remaining, cost, retryAfterMs, source }
}
