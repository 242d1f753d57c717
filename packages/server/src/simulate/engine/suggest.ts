import { MOST_UNITS } from '../../most-units.ts'
import { clientsOver, percentile, unitsOver, type WindowUse } from './usage.ts'

/** Suggestion is a limit derived from what clients use. */
export interface Suggestion {
  readonly rule: string
  /** A suggested burst, from what clients use in a second; for a minute only. */
  readonly burst: number | undefined
  /** The share of clients it is derived from: 0.99. */
  readonly share: number
  /** What that share of clients does not exceed in one window. */
  readonly use: number
  /** Clients that use more than the limit in some clock-aligned window. */
  readonly clientsOver: number
  /** Their use above the limit, in units. */
  readonly unitsOver: number
}

const SHARES = [0.5, 0.9, 0.99, 0.999, 1]

/**
 * sharesOf are the percentiles of the clients' largest use that are reported. With fewer than 100
 * clients p99 would equal the largest use, and p99.9 with fewer than 1,000, so they are left out.
 */
export function sharesOf(clients: number): number[] {
  return SHARES.filter((share) => share <= 0.9 || share === 1 || clients * (1 - share) >= 1)
}

const STEPS = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8]

/** The headroom of a suggestion above the observed use. */
const ROOM = 1.25

/** The factor for bursts, which may cross a second of the clock or come twice in a row. */
const BURSTS = 3

/** The tolerance for a log whose last request comes before its hour is over. */
const NEARLY = 0.98

/** Rounds up to a round number: 41 → 50, 51 → 60. */
function roundUp(value: number): number {
  for (let power = 1; ; power *= 10) {
    for (const step of STEPS) {
      const limit = step * power
      if (Number.isInteger(limit) && limit >= value) return limit
    }
  }
}

/**
 * suggest derives limits from percentiles of each window: a quarter above what 90, 99 and 99.9 % of
 * clients never exceed, rounded up; for a minute also a burst, three times what they use in a
 * second. Clients over a limit are counted exactly: a fixed window aligned to the clock would
 * refuse some of their requests.
 */
export function suggest(windows: readonly WindowUse[], spanUs: number): Suggestion[] {
  return windows.flatMap((window) => {
    // A log shorter than the window gives no suggestion.
    if (window.perUs * NEARLY > spanUs) return []
    if (percentile(window.largest, 1) === 0) return []
    const limits = new Map<number, number>()
    for (const share of sharesOf(window.largest.length)) {
      if (share < 0.9 || share === 1) continue
      const limit = Math.min(MOST_UNITS, roundUp(percentile(window.largest, share) * ROOM))
      // The largest share that does not exceed it.
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
