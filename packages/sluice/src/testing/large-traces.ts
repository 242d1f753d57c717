import { fixedWindow } from '../algorithms/fixed-window.ts'
import { gcra } from '../algorithms/gcra.ts'
import { leakyBucket } from '../algorithms/leaky-bucket.ts'
import { slidingWindowCounter } from '../algorithms/sliding-window-counter.ts'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import type { Trace } from './trace.ts'

const DAY = 86_400_000

/** A prime number of units in a coprime time: 11.57 units per microsecond. */
const prime = { limit: 999_999_999_989, per: 86_399_999 }

/**
 * largeTraces specifies rules whose products exceed 2^53. In each line a unit or a microsecond
 * depends on a fraction that a double would round away.
 */
export const largeTraces: readonly Trace[] = [
  ...[tokenBucket, gcra].flatMap((bucket): Trace[] => [
    {
      name: 'takes 999,999,999,989 in 86,399,999 ms, to the unit and the microsecond',
      rule: bucket(prime),
      lines: [
        [0, 7, true, 999_999_999_982, 0],
        [0, 500_000_000_000, true, 499_999_999_982, 0],
        [0, 499_999_999_983, false, 499_999_999_982, 0.001],
        [0, 499_999_999_982, true, 0, 0],
        [0, 1, false, 0, 0.001],
        [0.001, 12, false, 11, 0.001],
        [0.001, 11, true, 0, 0],
        // 0.574… units had remained.
        [0.002, 13, false, 12, 0.001],
        [0.002, 12, true, 0, 0],
        [86_399_998.999, 999_999_999_955, false, 999_999_999_954, 0.001],
        [86_399_999, 999_999_999_966, true, 0, 0],
        [DAY * 365, 999_999_999_989, true, 0, 0],
      ],
    },
    {
      name: 'refills 10^12 units within a millisecond',
      rule: bucket({ limit: 1_000_000_000_000, per: 1 }),
      lines: [
        [0, 1_000_000_000_000, true, 0, 0],
        [0, 1, false, 0, 0.001],
        [0.001, 1_000_000_000, true, 0, 0],
        [0.999, 998_000_000_001, false, 998_000_000_000, 0.001],
        [1, 999_000_000_000, true, 0, 0],
      ],
    },
    {
      name: 'admits a burst of 10^12 at a low rate',
      rule: bucket({ limit: 999_999_937, per: '1s', burst: 1_000_000_000_000 }),
      lines: [
        [0, 1_000_000_000_000, true, 0, 0],
        [1_000, 999_999_938, false, 999_999_937, 0.001],
        [1_000, 999_999_937, true, 0, 0],
      ],
    },
  ]),
  {
    name: 'spaces units of 0.086 microseconds without drift',
    rule: leakyBucket(prime),
    lines: [
      [0, 500_000_000_000, true, 499_999_999_990, 0, 0],
      // The slot is at 43,199,999,500.475… µs.
      [0, 499_999_999_990, true, 0, 0, 43_199_999.501],
      [0, 1, false, 0, 0.001],
      [86_399_999, 1, true, 999_999_999_988, 0, 0.001],
    ],
  },
  {
    name: 'counts 10^12 units in a window',
    rule: fixedWindow({ limit: 1_000_000_000_000, per: '1d' }),
    lines: [
      [0, 999_999_999_999, true, 1, 0],
      [0, 2, false, 1, DAY],
      [DAY - 0.001, 1, true, 0, 0],
      [DAY, 1_000_000_000_000, true, 0, 0],
    ],
  },
  {
    name: 'weights a window of 999,999,999,989 to the unit',
    rule: slidingWindowCounter({ limit: 1_000_000_000_000, per: '1d' }),
    lines: [
      [0, 999_999_999_989, true, 11, 0],
      [DAY + 30_690_909.09, 355_218_855_216, false, 355_218_855_215, 0.001],
      // The previous window counts 644,781,144,773 units and 1 / 86,400,000,000 of one, rounded up.
      [DAY + 30_690_909.091, 355_218_855_227, false, 355_218_855_226, 0.001],
      [DAY + 30_690_909.091, 355_218_855_226, true, 0, 0],
    ],
  },
]
