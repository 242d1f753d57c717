import { joinTop } from '../metrics/top-keys.ts'
import type { LiveAway, LiveDecision, LiveKeyNews, LiveNews, LiveSecond } from './live-event.ts'
import type { LiveAsked, LiveFeed, LiveTold } from './live-feed.ts'
import { joinAway, joinHistory, joinSeconds } from './live-join.ts'

/** Watcher is a viewer of the dashboard, called once a second. */
export interface Watcher {
  /** The key whose decisions it watches; undefined for none. */
  readonly key: string | undefined
  /** Called first, and once, with the last five minutes. */
  start(past: { history: readonly LiveSecond[]; away: readonly LiveAway[] }): void
  news(news: LiveNews): void
  /** Called with the last refusals after the start, then with all decisions. */
  keyNews(news: LiveKeyNews): void
}

/** LiveHub tells the watchers of this process about the decisions of all processes. */
export interface LiveHub {
  /** Resolves with a function that stops watching. Rejects if a process does not answer. */
  watch(watcher: Watcher): Promise<() => void>
}

/** LiveHubOptions: `gather` asks the feeds of all processes, this one included. */
export interface LiveHubOptions {
  readonly feed: LiveFeed
  gather(asked: LiveAsked): Promise<LiveTold[]>
}

const TOP_SHOWN = 10
const REFUSALS_SHOWN = 10

/**
 * createLiveHub asks all processes for news whenever this one has ended a second and has watchers.
 * Each process numbers its seconds: a second that is late, or whose process did not answer, is
 * included the next time, so that the sums of watchers match the decisions.
 */
export function createLiveHub({ feed, gather }: LiveHubOptions): LiveHub {
  const watchers = new Set<Watcher>()
  let seen: Record<string, number> = {}
  let isAsking = false
  let last: Promise<unknown> = Promise.resolve()

  /** Runs tasks one after the other, so that a watcher misses no second between start and news. */
  function inLine<T>(task: () => Promise<T>): Promise<T> {
    const next = last.then(task)
    last = next.catch(() => {})
    return next
  }

  const keys = () => [...watchers].flatMap(({ key }) => key ?? [])

  function see(all: readonly LiveTold[]): void {
    for (const { process, seconds } of all) {
      const newest = seconds.at(-1)
      if (newest) seen[process] = newest.number
    }
  }

  async function tellNews(): Promise<void> {
    const all = await gather({ seen, keys: keys(), refusalsOf: undefined })
    see(all)
    if (all.every(({ seconds }) => seconds.length === 0)) return
    const news: LiveNews = {
      ...joinSeconds(all.map(({ seconds }) => seconds)),
      limited: joinTop(
        all.map(({ limited }) => limited),
        TOP_SHOWN,
      ),
      talking: joinTop(
        all.map(({ talking }) => talking),
        TOP_SHOWN,
      ),
      away: joinAway(all.map(({ away }) => away)),
    }
    for (const watcher of watchers) {
      watcher.news(news)
      const about = all.flatMap(({ seconds }) =>
        seconds.flatMap((second) => second.keys.get(watcher.key ?? '') ?? []),
      )
      if (watcher.key === undefined || about.length === 0) continue
      watcher.keyNews({
        key: watcher.key,
        decisions: about.flatMap(({ decisions }) => decisions).sort(byTime),
        leftOut: about.reduce((sum, { leftOut }) => sum + leftOut, 0),
      })
    }
  }

  feed.onSecond(() => {
    if (watchers.size === 0 || isAsking) return
    isAsking = true
    // A process that did not answer is asked again in a second.
    inLine(tellNews)
      .catch(() => {})
      .finally(() => {
        isAsking = false
      })
  })

  return {
    watch: (watcher) =>
      inLine(async () => {
        const { key } = watcher
        const asked = { keys: [...keys(), ...(key === undefined ? [] : [key])], refusalsOf: key }
        const all = await gather({ seen: {}, ...asked })
        if (watchers.size === 0) {
          seen = {}
          see(all)
        }
        // Seconds that the other watchers have not seen yet are news for this one as well.
        const past = all.map((told) => ({
          ...told,
          seconds: told.seconds.filter(({ number }) => number <= (seen[told.process] ?? 0)),
        }))
        watcher.start({ history: joinHistory(past), away: joinAway(all.map(({ away }) => away)) })
        if (key !== undefined) {
          const decisions = all.flatMap(({ refusals }) => refusals).sort(byTime)
          watcher.keyNews({ key, decisions: decisions.slice(-REFUSALS_SHOWN), leftOut: 0 })
        }
        watchers.add(watcher)
        return () => void watchers.delete(watcher)
      }),
  }
}

function byTime(a: LiveDecision, b: LiveDecision): number {
  return a.atMs - b.atMs
}
