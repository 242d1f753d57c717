import type { Decision } from 'sluice'
import { createTopKeys } from '../metrics/top-keys.ts'
import { createLatency } from './latency.ts'
import type {
  LiveAway,
  LiveDecision,
  LiveKeyNews,
  LiveNews,
  LiveSecond,
  LiveTop,
} from './live-event.ts'
import { createRecentRefusals } from './recent-refusals.ts'
import { createTally, type Outcome } from './tally.ts'

/** LiveDecided is a decision of the service. */
export interface LiveDecided {
  readonly route: string
  readonly tier: string
  readonly key: string
  readonly cost: number
  readonly decision: Decision
  readonly shadowed: boolean
  /** How long it took to decide; undefined when nobody measured it. */
  readonly seconds: number | undefined
}

/** Watcher is told what happens, once a second. */
export interface Watcher {
  /** The key whose decisions it wants to see; undefined for none. */
  readonly key: string | undefined
  news(news: LiveNews): void
  keyNews(news: LiveKeyNews): void
}

/** LiveFeed gathers what the service does for those who watch, and the last five minutes for all. */
export interface LiveFeed {
  decided(told: LiveDecided): void
  /** Says that the store is away, and why, or that it is back. */
  degraded(reason: string | undefined): void
  /** The last seconds, the newest last. */
  history(): readonly LiveSecond[]
  /** The last times without the store, the newest last. */
  away(): readonly LiveAway[]
  /** Gives the way to stop. A watcher of a key is told at once of its last refusals. */
  watch(watcher: Watcher): () => void
  /** Ends a second. It happens by itself every second. */
  tick(): void
  close(): void
}

const SECONDS_KEPT = 300
const AWAY_KEPT = 20
const TOP_SHOWN = 10
/** Decisions of a watched key that are shown of each second. */
const DECISIONS_SHOWN = 20
/** Decisions of a second that are looked at one by one; of those beyond, one in so many. */
const EACH_A_SECOND = 1_000
const ONE_IN = 16
const STORELESS = new Set(['local', 'open', 'closed'])

/** LiveFeedOptions: who is refused most is counted elsewhere already. */
export interface LiveFeedOptions {
  limited(count: number): LiveTop['limited']
  nowMs?(): number
}

/**
 * createLiveFeed starts to gather. All decisions are counted by route, tier and rule. By key the
 * first thousand of a second are, and one in sixteen of the others, for sixteen.
 */
export function createLiveFeed({ limited, nowMs = Date.now }: LiveFeedOptions): LiveFeed {
  const tally = createTally()
  const latency = createLatency()
  const talking = createTopKeys()
  const refusals = createRecentRefusals()
  const history: LiveSecond[] = []
  const away: LiveAway[] = []
  const watchers = new Set<Watcher>()
  const watched = new Map<string, { decisions: LiveDecision[]; leftOut: number }>()
  let isAway = false
  let storeless = 0
  let seen = 0
  let lastMs = nowMs()

  function tick(): void {
    const atMs = nowMs()
    const second: LiveSecond = {
      atMs,
      forMs: atMs - lastMs,
      counts: tally.take(),
      latency: latency.take(),
      storeless,
      isAway,
    }
    lastMs = atMs
    storeless = 0
    seen = 0
    history.push(second)
    if (history.length > SECONDS_KEPT) history.shift()
    if (watchers.size === 0) return
    const top = { limited: limited(TOP_SHOWN), talking: talking.top(TOP_SHOWN) }
    const news = { ...second, ...top, away }
    for (const watcher of watchers) {
      watcher.news(news)
      const about = watcher.key === undefined ? undefined : watched.get(watcher.key)
      if (about && about.decisions.length > 0) watcher.keyNews({ key: watcher.key!, ...about })
    }
    for (const key of watched.keys()) watched.set(key, { decisions: [], leftOut: 0 })
  }

  const timer = setInterval(tick, 1_000).unref()
  return {
    decided(told) {
      const { route, tier, key, decision, shadowed, seconds } = told
      const outcome = decision.allowed ? 'allowed' : shadowed ? 'shadowed' : 'refused'
      tally.count(route, tier, decision.rule, outcome)
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
      const about = watched.get(key)!
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
    history: () => history,
    away: () => away,
    watch(watcher) {
      const { key } = watcher
      watchers.add(watcher)
      if (key !== undefined) {
        if (!watched.has(key)) watched.set(key, { decisions: [], leftOut: 0 })
        watcher.keyNews({ key, decisions: refusals.of(key), leftOut: 0 })
      }
      return () => {
        watchers.delete(watcher)
        if (key === undefined || [...watchers].some((other) => other.key === key)) return
        watched.delete(key)
      }
    },
    tick,
    close: () => clearInterval(timer),
  }
}

/** The deciding rule's own figures: those of the decision are of all rules. */
function shownOf(
  { route, tier, cost, decision }: LiveDecided,
  outcome: Outcome,
  atMs: number,
): LiveDecision {
  const { rule, rules, retryAfterMs, source } = decision
  const remaining = rules.find((each) => each.rule === rule)?.remaining ?? decision.remaining
  return { atMs, route, tier, outcome, rule, remaining, cost, retryAfterMs, source }
}
