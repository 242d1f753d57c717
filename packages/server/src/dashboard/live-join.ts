import type { LiveAway, LiveCount, LiveLatency, LiveSecond } from './live-event.ts'
import type { LiveTold, ToldSecond } from './live-feed.ts'

/** joinHistory adds up the seconds of several processes that ended at about the same time. */
export function joinHistory(all: readonly LiveTold[]): LiveSecond[] {
  const groups = new Map<number, ToldSecond[][]>()
  for (const { seconds } of all) {
    for (const second of seconds) {
      const time = Math.round(second.atMs / 1_000)
      const group = groups.get(time)
      if (group) group.push([second])
      else groups.set(time, [[second]])
    }
  }
  const times = [...groups].sort(([a], [b]) => a - b)
  return times.map(([, group]) => joinSeconds(group))
}

/** joinSeconds adds up seconds: a list for each process, one of them not empty. */
export function joinSeconds(lists: readonly (readonly ToldSecond[])[]): LiveSecond {
  const all = lists.flat()
  const lengths = lists.map((seconds) => seconds.reduce((sum, { forMs }) => sum + forMs, 0))
  return {
    atMs: Math.max(...all.map(({ atMs }) => atMs)),
    forMs: Math.max(...lengths),
    counts: joinCounts(all.map(({ counts }) => counts)),
    latency: all.map(({ latency }) => latency).reduce(slower),
    storeless: all.reduce((sum, { storeless }) => sum + storeless, 0),
    isAway: lists.some((seconds) => seconds.at(-1)?.isAway),
  }
}

function joinCounts(lists: readonly (readonly LiveCount[])[]): readonly LiveCount[] {
  if (lists.length === 1) return lists[0]
  const joined = new Map<string, LiveCount>()
  for (const count of lists.flat()) {
    const name = JSON.stringify([count.route, count.tier, count.rule])
    const other = joined.get(name)
    const sum = (part: 'allowed' | 'refused' | 'shadowed') => count[part] + (other?.[part] ?? 0)
    joined.set(name, {
      ...count,
      allowed: sum('allowed'),
      refused: sum('refused'),
      shadowed: sum('shadowed'),
    })
  }
  return [...joined.values()]
}

/** Percentiles cannot be added up: those of the slowest process are used. */
function slower(a: LiveLatency | null, b: LiveLatency | null): LiveLatency | null {
  if (!a || !b) return a ?? b
  const { p50Ms, p99Ms, mostMs } = b.p99Ms > a.p99Ms ? b : a
  return { count: a.count + b.count, p50Ms, p99Ms, mostMs }
}

/** joinAway joins outages that overlap, the newest last. */
export function joinAway(lists: readonly (readonly LiveAway[])[]): LiveAway[] {
  const joined: LiveAway[] = []
  for (const time of lists.flat().sort((a, b) => a.fromMs - b.fromMs)) {
    const last = joined.at(-1)
    if (!last || (last.toMs !== null && last.toMs < time.fromMs)) {
      joined.push(time)
      continue
    }
    const isOver = last.toMs !== null && time.toMs !== null
    const toMs = isOver ? Math.max(last.toMs ?? 0, time.toMs ?? 0) : null
    joined[joined.length - 1] = { ...last, toMs }
  }
  return joined
}
