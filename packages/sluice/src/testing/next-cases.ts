import { fixedWindow } from '../algorithms/fixed-window.ts'
import { gcra } from '../algorithms/gcra.ts'
import { leakyBucket } from '../algorithms/leaky-bucket.ts'
import { slidingWindowCounter } from '../algorithms/sliding-window-counter.ts'
import { slidingWindowLog } from '../algorithms/sliding-window-log.ts'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import { unlimited } from '../algorithms/unlimited.ts'
import type { Rule } from '../core/rule.ts'
import { equal } from './equal.ts'
import { limiterOn } from './limiter-on.ts'
import type { MadeStore, StoreCase } from './store-suite.ts'

/** At `atMs` after the start, after a charge of `cost` → remaining, nextAfterMs. */
type Line = readonly [atMs: number, cost: number, remaining: number, nextAfterMs: number]

const second = { per: '1s' } as const

const lines: readonly (readonly [Rule, readonly Line[]])[] = [
  ...[tokenBucket, gcra].flatMap((bucket): (readonly [Rule, readonly Line[]])[] => [
    [
      bucket({ ...second, limit: 2 }),
      [
        [0, 0, 2, 0],
        [0, 1, 1, 500],
        [0, 1, 0, 500],
        [499.999, 0, 0, 0.001],
        [500, 0, 1, 500],
        [1_000, 0, 2, 0],
        // Debt: three gaps until it has refilled, and one more.
        [1_000, 5, 0, 2_000],
      ],
    ],
    [
      bucket({ limit: 3, per: 1 }),
      [
        [0, 3, 0, 0.334],
        [0.334, 0, 1, 0.333],
        [0.667, 0, 2, 0.333],
        [1, 0, 3, 0],
      ],
    ],
  ]),
  [
    leakyBucket({ ...second, limit: 1, queue: 1 }),
    [
      [0, 1, 1, 1_000],
      [250, 0, 1, 750],
      [250, 1, 0, 750],
    ],
  ],
  [
    fixedWindow({ ...second, limit: 3 }),
    [
      [0, 1, 2, 1_000],
      [400, 2, 0, 600],
      [1_000, 0, 3, 0],
    ],
  ],
  [
    slidingWindowLog({ ...second, limit: 3 }),
    [
      [0, 1, 2, 1_000],
      [300, 2, 0, 700],
      [1_000, 0, 1, 300],
      [1_300, 0, 3, 0],
    ],
  ],
  [
    slidingWindowCounter({ ...second, limit: 4 }),
    [
      // Used units start to slide out when their window ends, one per quarter of a second.
      [0, 4, 0, 1_250],
      [1_000, 0, 0, 250],
      [1_250, 0, 1, 250],
      [2_000, 0, 4, 0],
    ],
  ],
  [unlimited(), [[0, 1, Number.POSITIVE_INFINITY, 0]]],
]

/** nextCases check `nextAfterMs` of each algorithm, and that the next unit comes at that instant. */
export function nextCases(without: readonly string[]): StoreCase[] {
  return lines
    .filter(([rule]) => !without.includes(rule.algorithm.name))
    .map(([rule, steps]) => ({
      name: `${rule.algorithm.name} of ${rule.limit} reports when the next unit comes`,
      run: (made) => play(made, rule, steps),
    }))
}

async function play(
  { store, clock }: MadeStore,
  rule: Rule,
  steps: readonly Line[],
): Promise<void> {
  const limiter = limiterOn(rule, { store, name: 'next' })
  const startUs = clock.nowUs()
  for (const [i, [atMs, cost, remaining, nextAfterMs]] of steps.entries()) {
    clock.advance(atMs - (clock.nowUs() - startUs) / 1_000)
    await limiter.charge('key', cost)
    const [seen] = (await limiter.check('key', 0)).rules
    const label = `line ${i}: at ${atMs} ms`
    equal([seen.remaining, seen.nextAfterMs], [remaining, nextAfterMs], label)
    equal((await limiter.peek('key', 0)).rules[0], seen, `${label}: peek`)
  }
}
