import type {
  LiveAway,
  LiveCount,
  LiveDecision,
  LiveKeyNews,
  LiveNews,
  LiveSecond,
  LiveStart,
  LiveTop,
} from '../../src/dashboard/live-event.ts'

/** LiveState is the state of the page, from the events of the stream. */
export interface LiveState {
  readonly start: LiveStart
  /** The last five minutes, the newest last. */
  readonly seconds: readonly LiveSecond[]
  /** Undefined until the first second. */
  readonly top: LiveTop | undefined
  readonly away: readonly LiveAway[]
  /** Decisions about the open key, the newest first. */
  readonly decisions: readonly LiveDecision[]
  /** How many decisions about it were not sent individually. */
  readonly leftOut: number
}

const SECONDS_KEPT = 300
const DECISIONS_KEPT = 50

/** startedState starts with the first event; the top keys follow with the first second. */
export function startedState(start: LiveStart, before: LiveState | undefined): LiveState {
  const { history: seconds, away } = start
  const { decisions = [], leftOut = 0 } = before ?? {}
  return { start, seconds, top: before?.top, away, decisions, leftOut }
}

/** withSecond adds a second. */
export function withSecond(state: LiveState, news: LiveNews): LiveState {
  const { limited, talking, away, ...second } = news
  const seconds = [...state.seconds, second].slice(-SECONDS_KEPT)
  return { ...state, seconds, top: { limited, talking }, away }
}

/** withKey adds decisions about the open key, without duplicates. */
export function withKey(state: LiveState, { decisions, leftOut }: LiveKeyNews): LiveState {
  const known = new Set(state.decisions.map((each) => JSON.stringify(each)))
  const added = decisions.filter((each) => !known.has(JSON.stringify(each)))
  return {
    ...state,
    decisions: [...added.reverse(), ...state.decisions].slice(0, DECISIONS_KEPT),
    leftOut: state.leftOut + leftOut,
  }
}

/** Filter selects a route or a tier; empty for all. */
export interface Filter {
  readonly route: string
  readonly tier: string
}

/** Sum is a sum of decisions. */
export interface Sum {
  readonly allowed: number
  readonly refused: number
  readonly shadowed: number
}

/** sumOf adds up the counts that pass the filter. */
export function sumOf(counts: readonly LiveCount[], { route, tier }: Filter): Sum {
  const sum = { allowed: 0, refused: 0, shadowed: 0 }
  for (const count of counts) {
    if (route !== '' && count.route !== route) continue
    if (tier !== '' && count.tier !== tier) continue
    sum.allowed += count.allowed
    sum.refused += count.refused
    sum.shadowed += count.shadowed
  }
  return sum
}

/** totals adds up all seconds, grouped by `nameOf`, most decisions first. */
export function totals(
  seconds: readonly LiveSecond[],
  nameOf: (count: LiveCount) => string,
): (Sum & { readonly name: string; readonly about: LiveCount })[] {
  const groups = new Map<string, LiveCount[]>()
  for (const { counts } of seconds) {
    for (const count of counts) {
      const name = nameOf(count)
      const group = groups.get(name)
      if (group) group.push(count)
      else groups.set(name, [count])
    }
  }
  const all = [...groups].map(([name, counts]) => {
    return { name, about: counts[0], ...sumOf(counts, { route: '', tier: '' }) }
  })
  return all.sort((a, b) => b.allowed + b.refused + b.shadowed - a.allowed - a.refused - a.shadowed)
}
