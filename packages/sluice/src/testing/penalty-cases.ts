import { fixedWindow } from '../algorithms/fixed-window.ts'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import type { Rule } from '../core/rule.ts'
import type { PenaltyOptions } from '../limiter/penalty.ts'
import type { Limiter } from '../limiter/verbs.ts'
import { equal } from './equal.ts'
import { limiterOn } from './limiter-on.ts'
import type { ManualClock } from './manual-clock.ts'
import { seededRandom } from './random.ts'
import type { StoreCase } from './store-suite.ts'

const HOUR_MS = 3_600_000

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

/** Refusals in a row, after all units were spent. */
async function refuse(limiter: Limiter, times: number): Promise<void> {
  // A broken store may never refuse.
  for (let i = 0; i < 100 && (await limiter.check('a')).allowed; i += 1);
  for (let i = 1; i < times; i += 1) await limiter.check('a')
}

const fiveSeconds = fixedWindow({ limit: 1, per: '5s' })

/** penaltyCases check when a key is blocked that is refused too often, and when that is forgotten. */
export const penaltyCases: readonly StoreCase[] = [
  on(
    'a penalty blocks a key after so many refusals, longer each time',
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

  on(
    'a penalty equals a list of refusals, and is forgotten by a reset',
    tokenBucket({ limit: 5, per: '5s' }),
    { after: 4, within: '3s', block: ['2s', '5s', '1m'] },
    async (given, clock) => {
      const limiter: Limiter = given as never
      const random = seededRandom(7)
      const blocksMs = [2_000, 5_000, 60_000]
      let counted: number[] = []
      let [blocks, untilMs, forgetMs, nowMs] = [0, 0, 0, 0]
      for (let i = 0; i < 600; i += 1) {
        const isBlocked = nowMs < untilMs
        const { allowed, source } = await limiter.check('a', 1 + random.below(2))
        if (isBlocked) {
          equal([allowed, source], [false, 'blocked'], `call ${i}`)
        } else if (!allowed) {
          if (counted.length > 0 && nowMs >= counted[0] + 3_000) counted = []
          counted.push(nowMs)
          const isLast = counted.length === 4
          equal(source, isLast ? 'blocked' : 'store', `refusal ${i}`)
          if (isLast) {
            if (nowMs >= forgetMs) blocks = 0
            const ms = blocksMs[Math.min(blocks, 2)]
            equal((await limiter.peek('a')).retryAfterMs, ms, `block ${i}`)
            counted = []
            blocks += 1
            untilMs = nowMs + ms
            forgetMs = untilMs + Math.max(10 * ms, 3_000)
          }
        }
        if (random.below(150) === 0) {
          await limiter.reset('a')
          counted = []
          ;[blocks, untilMs, forgetMs] = [0, 0, 0]
        }
        const ms = random.pick([0, 0, 100, 400, 1_000, 3_000, random.below(20) > 0 ? 0 : HOUR_MS])
        clock.advance(ms)
        nowMs += ms
      }
    },
  ),
]

/** fieldPenaltyCases are about keys with fields. */
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
