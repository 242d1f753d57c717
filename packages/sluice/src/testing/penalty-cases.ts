import { fixedWindow } from '../algorithms/fixed-window.ts'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import type { Rule } from '../core/rule.ts'
import type { PenaltyOptions } from '../limiter/penalty.ts'
import type { Limiter } from '../limiter/verbs.ts'
import { equal } from './equal.ts'
import { limiterOn } from './limiter-on.ts'
import type { ManualClock } from './manual-clock.ts'
import { playPenalties } from './penalty-streams.ts'
import type { StoreCase } from './store-suite.ts'

/** Number of random streams per store, each with its own penalty; and steps per stream. */
const STREAMS = 20
const STEPS = 60

const penalty = { after: 3, within: '10s', block: ['1m', '10m'] } as const

function on(
  name: string,
  rules: Rule | readonly Rule[],
  options: PenaltyOptions,
  run: (limiter: Limiter<never>, clock: ManualClock) => Promise<void>,
): StoreCase {
  return {
    name,
    run: ({ store, clock }) =>
      run(limiterOn(rules, { store, name: 'penalty', penalty: options }) as never, clock),
  }
}

/** Spends all units, then causes `times` refusals. */
async function refuse(limiter: Limiter, times: number): Promise<void> {
  // A broken store may never refuse.
  for (let i = 0; i < 100 && (await limiter.check('a')).allowed; i += 1);
  for (let i = 1; i < times; i += 1) await limiter.check('a')
}

const fiveSeconds = fixedWindow({ limit: 1, per: '5s' })

/** penaltyCases check when a penalty blocks a key, and when it is forgotten. */
export const penaltyCases: readonly StoreCase[] = [
  on(
    'a penalty blocks a key after repeated refusals, longer each time',
    fiveSeconds,
    penalty,
    async (given, clock) => {
      const limiter: Limiter = given as never
      await refuse(limiter, 2)
      equal((await limiter.peek('a')).source, 'store', 'two refusals')
      const { source, retryAfterMs } = await limiter.check('a')
      equal([source, retryAfterMs], ['blocked', 60_000], 'the third refusal')
      clock.advance(59_999.999)
      equal((await limiter.check('a')).allowed, false, 'a microsecond early')
      clock.advance(0.001)
      await refuse(limiter, 3)
      equal((await limiter.peek('a')).retryAfterMs, 600_000, 'the second block')
      clock.advance(600_000)
      await refuse(limiter, 3)
      equal((await limiter.peek('a')).retryAfterMs, 600_000, 'the last one again')
      clock.advance(6_600_000)
      await refuse(limiter, 3)
      equal((await limiter.peek('a')).retryAfterMs, 60_000, 'the first one, after a good while')
    },
  ),
]

/** fieldPenaltyCases check penalties of keys with fields. */
export const fieldPenaltyCases: readonly StoreCase[] = [
  on(
    'a penalty counts the refusals by rules of its field only',
    [
      tokenBucket({ limit: 2, per: '1m', by: 'user' }),
      fixedWindow({ limit: 3, per: '1s', by: 'global' }),
    ],
    { by: 'user', after: 2, within: '1m', block: '1h' },
    async (given) => {
      const limiter: Limiter<{ readonly user: string }> = given as never
      for (const user of ['a', 'b', 'b', 'a', 'a', 'a']) await limiter.check({ user })
      equal((await limiter.peek({ user: 'a' })).source, 'store', 'refused by the global rule')
      await limiter.check({ user: 'b' })
      equal((await limiter.check({ user: 'b' })).source, 'blocked', 'refused by its own')
    },
  ),
]

/**
 * penaltyStreams plays random refusals with many penalties, with or without fields, against the
 * model.
 */
export function penaltyStreams(seed: number, hasFields: boolean): StoreCase {
  const of = hasFields ? ' of a field' : ''
  return {
    name: `a penalty${of} equals the model on ${STREAMS * STEPS} random steps (seed ${seed})`,
    async run(made) {
      for (let i = 0; i < STREAMS; i += 1) await playPenalties(made, seed + i, STEPS, hasFields)
    },
  }
}
