import { fixedWindow } from '../algorithms/fixed-window.ts'
import { gcra } from '../algorithms/gcra.ts'
import { leakyBucket } from '../algorithms/leaky-bucket.ts'
import { slidingWindowCounter } from '../algorithms/sliding-window-counter.ts'
import { slidingWindowLog } from '../algorithms/sliding-window-log.ts'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import { calendarTraces } from './calendar-traces.ts'
import { largeTraces } from './large-traces.ts'
import type { Trace } from './trace.ts'

const DAY = 86_400_000

/** A trace for token bucket and GCRA, which decide alike. */
interface BucketTrace extends Omit<Trace, 'rule'> {
  readonly rule: Parameters<typeof tokenBucket>[0]
}

const buckets: readonly BucketTrace[] = [
  {
    name: 'admits a full burst, then one request per gap',
    rule: { limit: 2, per: '1s' },
    lines: [
      [0, 1, true, 1, 0],
      [0, 1, true, 0, 0],
      [0, 1, false, 0, 500],
      [499.999, 1, false, 0, 0.001],
      [500, 1, true, 0, 0],
    ],
  },
  {
    name: 'supports a burst that differs from the rate',
    rule: { limit: 100, per: '1m', burst: 20 },
    lines: [
      [0, 1, true, 19, 0],
      [0, 5, true, 14, 0],
      [0, 15, false, 14, 600],
      [600, 15, true, 0, 0],
      [600, 20, false, 0, 12_000],
    ],
  },
  {
    name: 'is exact when the gap is not a whole microsecond',
    rule: { limit: 3, per: 1, burst: 1 },
    lines: [
      [0, 1, true, 0, 0],
      [0.333, 1, false, 0, 0.001],
      [0.334, 1, true, 0, 0],
      [0.667, 1, false, 0, 0.001],
      [0.668, 1, true, 0, 0],
      // The first two waits were rounded up, so the third gap starts at 0.668.
      [1.001, 1, false, 0, 0.001],
      [1.002, 1, true, 0, 0],
    ],
  },
  {
    name: 'admits seven per second for ever, without drift',
    rule: { limit: 7, per: '1s' },
    lines: [
      [0, 7, true, 0, 0],
      [142.857, 1, false, 0, 0.001],
      [142.858, 1, true, 0, 0],
      [1_000, 6, true, 0, 0],
      [365 * DAY, 7, true, 0, 0],
      [365 * DAY + 999.999, 7, false, 6, 0.001],
      [365 * DAY + 1_000, 7, true, 0, 0],
    ],
  },
  {
    name: 'does not admit more after an idle spell',
    rule: { limit: 10, per: '1s' },
    lines: [
      [0, 10, true, 0, 0],
      [60_000, 10, true, 0, 0],
      [60_000, 1, false, 0, 100],
      [60_100, 1, true, 0, 0],
      [60_100, 1, false, 0, 100],
    ],
  },
  {
    name: 'admits ten million per second',
    rule: { limit: 10_000_000, per: '1s' },
    lines: [
      [0, 10_000_000, true, 0, 0],
      [0, 1, false, 0, 0.001],
      [0.001, 10, true, 0, 0],
      [0.001, 11, false, 0, 0.002],
      [1, 9_990, true, 0, 0],
    ],
  },
  {
    name: 'refills one unit in 400 days',
    rule: { limit: 1, per: '400d' },
    lines: [
      [0, 1, true, 0, 0],
      [30 * DAY, 1, false, 0, 370 * DAY],
      [400 * DAY - 0.001, 1, false, 0, 0.001],
      [400 * DAY, 1, true, 0, 0],
    ],
  },
]

/** traces specifies all algorithms by hand-written traces. */
export const traces: readonly Trace[] = [
  ...[tokenBucket, gcra].flatMap((bucket) =>
    buckets.map((trace) => ({ ...trace, rule: bucket(trace.rule) })),
  ),
  ...calendarTraces,
  ...largeTraces,
  {
    name: 'opens a window at the first request and admits the limit in it',
    rule: fixedWindow({ limit: 2, per: '1s' }),
    lines: [
      [300, 1, true, 1, 0],
      [900, 1, true, 0, 0],
      [1_299, 1, false, 0, 1],
      [1_299.999, 1, false, 0, 0.001],
      [1_300, 1, true, 1, 0],
    ],
  },
  {
    name: 'follows the clock when aligned to it',
    rule: fixedWindow({ limit: 2, per: '1s', align: 'clock' }),
    lines: [
      [900, 2, true, 0, 0],
      [900, 1, false, 0, 100],
      [999.999, 1, false, 0, 0.001],
      [1_000, 2, true, 0, 0],
      [1_000, 2, false, 0, 1_000],
    ],
  },
  {
    name: 'refuses a cost that does not fit and charges nothing for it',
    rule: fixedWindow({ limit: 10, per: '1m' }),
    lines: [
      [0, 1, true, 9, 0],
      [0, 10, false, 9, 60_000],
      [0, 9, true, 0, 0],
    ],
  },
  {
    name: 'ends a window longer than setTimeout supports at the right time',
    rule: fixedWindow({ limit: 1, per: '30d' }),
    lines: [
      [0, 1, true, 0, 0],
      [1, 1, false, 0, 30 * DAY - 1],
      [2, 1, false, 0, 30 * DAY - 2],
      [30 * DAY - 0.001, 1, false, 0, 0.001],
      [30 * DAY, 1, true, 0, 0],
    ],
  },
  {
    name: 'ends a window of two milliseconds',
    rule: fixedWindow({ limit: 1, per: '2ms' }),
    lines: [
      [0, 1, true, 0, 0],
      [1.999, 1, false, 0, 0.001],
      [2, 1, true, 0, 0],
    ],
  },
  {
    name: 'counts every admission for exactly one window',
    rule: slidingWindowLog({ limit: 2, per: '1s' }),
    lines: [
      [0, 1, true, 1, 0],
      [600, 1, true, 0, 0],
      [600, 1, false, 0, 400],
      [999.999, 1, false, 0, 0.001],
      [1_000, 1, true, 0, 0],
      [1_000, 2, false, 0, 1_000],
      [1_600, 1, true, 0, 0],
    ],
  },
  {
    name: 'keeps a cost as one entry',
    rule: slidingWindowLog({ limit: 5, per: '1s' }),
    lines: [
      [0, 3, true, 2, 0],
      [100, 2, true, 0, 0],
      [100, 4, false, 0, 1_000],
      [100, 3, false, 0, 900],
      [1_000, 3, true, 0, 0],
    ],
  },
  {
    name: 'weights the previous window by the part that still counts, rounded up',
    rule: slidingWindowCounter({ limit: 10, per: '1s' }),
    lines: [
      [0, 10, true, 0, 0],
      [999.999, 1, false, 0, 100.001],
      [1_000, 1, false, 0, 100],
      [1_099.999, 1, false, 0, 0.001],
      [1_100, 1, true, 0, 0],
      [1_500, 5, false, 4, 100],
      [1_500, 4, true, 0, 0],
    ],
  },
  {
    name: 'reports the wait of a cost that fits only into the window after next',
    rule: slidingWindowCounter({ limit: 10, per: '1s' }),
    lines: [
      [500, 4, true, 6, 0],
      [500, 10, false, 6, 1_500],
      [1_999.999, 10, false, 9, 0.001],
      [2_000, 10, true, 0, 0],
    ],
  },
  {
    name: 'assigns slots at a constant rate',
    rule: leakyBucket({ limit: 2, per: '1s', queue: 2 }),
    lines: [
      [0, 1, true, 2, 0, 0],
      [0, 1, true, 1, 0, 500],
      [0, 1, true, 0, 0, 1_000],
      [0, 1, false, 0, 500],
      [499.999, 1, false, 0, 0.001],
      [500, 1, true, 0, 0, 1_000],
      [5_000, 1, true, 2, 0, 0],
    ],
  },
  {
    name: 'takes as many slots as the cost, and delays until the first',
    rule: leakyBucket({ limit: 10, per: '1s', queue: 4 }),
    lines: [
      [0, 3, true, 2, 0, 0],
      [0, 2, true, 0, 0, 300],
      [0, 5, false, 0, 500],
      [100, 1, true, 0, 0, 400],
    ],
  },
  {
    name: 'spaces thirds of a millisecond without drift',
    rule: leakyBucket({ limit: 3, per: 1, queue: 5 }),
    lines: [
      [0, 1, true, 5, 0, 0],
      [0, 1, true, 4, 0, 0.334],
      [0, 1, true, 3, 0, 0.667],
      [0, 1, true, 2, 0, 1],
      [0, 2, true, 0, 0, 1.334],
    ],
  },
]
