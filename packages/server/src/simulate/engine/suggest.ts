import { MOST_UNITS } from '../../most-units.ts'
import { clientsOver, percentile, unitsOver, type WindowUse } from './usage.ts'

/** Suggestion is a limit taken from what clients use. */
export interface Suggestion {
  readonly rule: string
  /** A burst to begin with, from what is used in a second; undefined but for a minute. */
  readonly burst: number | undefined
  /** The share of clients it is taken from: 0.99. */
  readonly share: number
  /** What so many clients do not exceed in one window. */
  readonly use: number
  /** Clients that use more than the limit in some window of the clock. */
  readonly clientsOver: number
  /** What they use above it, in units. */
  readonly unitsOver: number
}

const SHARES = [0.5, 0.9, 0.99, 0.999, 1]

/**
 * sharesOf are the percentiles of the clients' largest use that are told. Of fewer than 100 clients
 * p99 would be the largest of all, and p99.9 of fewer than 1,000: they say nothing more.
 */
export function sharesOf(clients: number): number[] {
  return SHARES.filter((share) => share <= 0.9 || share === 1 || clients * (1 - share) >= 1)
}

const STEPS = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8]

/** The room that a suggestion leaves above what was seen. */
const ROOM = 1.25

/** A burst goes over the edge of a second of the clock, or comes twice in a row. */
const BURSTS = 3

/** The last request of an hour's log comes some time before the hour is over. */
const NEARLY = 0.98

/** The next number that is easy to say: 41 → 50, 51 → 60. */
function roundUp(value: number): number {
  for (let power = 1; ; power *= 10) {
    for (const step of STEPS) {
      const limit = step * power
      if (Number.isInteger(limit) && limit >= value) return limit
    }
  }
}

/**
 * suggest takes a limit from percentiles of each window: a quarter above what 90, 99 and 99.9 % of
 * clients never exceed, rounded up; for a minute also a burst, three times what they use in a second.
 * What is over a limit is counted exactly: those clients are the
 * ones that a fixed window aligned to the clock would refuse something.
 */
export function suggest(windows: readonly WindowUse[], spanUs: number): Suggestion[] {
  return windows.flatMap((window) => {
    // A window longer than the log says nothing.
    if (window.perUs * NEARLY > spanUs) return []
    if (percentile(window.largest, 1) === 0) return []
    const limits = new Map<number, number>()
    for (const share of sharesOf(window.largest.length)) {
      if (share < 0.9 || share === 1) continue
      const limit = Math.min(MOST_UNITS, roundUp(percentile(window.largest, share) * ROOM))
      // The largest share that it is enough for.
      limits.set(limit, share)
    }
    return [...limits].map(([limit, share]) => ({
      rule: `${limit}/${window.per}`,
      burst:
        window.per === '1m'
          ? Math.min(limit, roundUp(percentile(windows[0].largest, share) * BURSTS))
          : undefined,
      share,
      use: percentile(window.largest, share),
      clientsOver: clientsOver(window, limit),
      unitsOver: unitsOver(window, limit),
    }))
  })
}
