import { fixedWindow } from '../algorithms/fixed-window.ts'
import { leakyBucket } from '../algorithms/leaky-bucket.ts'
import { slidingWindowCounter } from '../algorithms/sliding-window-counter.ts'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import { unlimited } from '../algorithms/unlimited.ts'
import type { Limiter } from '../limiter/verbs.ts'
import { equal, fails } from './equal.ts'
import { hostileKeys } from './hostile-keys.ts'
import { limiterOn } from './limiter-on.ts'
import type { ManualClock } from './manual-clock.ts'
import type { StoreCase } from './store-suite.ts'

const three = tokenBucket({ limit: 3, per: '3s' })

const remaining = async (limiter: Limiter, key: string) => (await limiter.peek(key)).remaining

function on(
  name: string,
  rules: Parameters<typeof limiterOn>[0],
  run: (limiter: Limiter, clock: ManualClock) => Promise<void>,
): StoreCase {
  return { name, run: ({ store, clock }) => run(limiterOn(rules, { store, name: 'verbs' }), clock) }
}

/** verbCases check each verb, with one rule or several. */
export const verbCases: readonly StoreCase[] = [
  on('peek spends nothing and predicts the decision of check', three, async (limiter) => {
    await limiter.check('a', 2)
    const first = await limiter.peek('a', 2)
    equal(await limiter.peek('a', 2), first, 'a second peek')
    equal(first.allowed, false, 'peek refuses what does not fit')
    const { allowed, retryAfterMs } = await limiter.check('a', 2)
    equal([allowed, retryAfterMs], [first.allowed, first.retryAfterMs], 'check after peek')
    equal((await limiter.peek('b')).remaining, 3, 'peek shows what stands, not what would be left')
  }),

  on('a refusal costs nothing, however often', three, async (limiter, clock) => {
    await limiter.check('a', 3)
    for (let i = 0; i < 50; i += 1) equal((await limiter.check('a')).allowed, false, 'refused')
    clock.advance(1_000)
    equal((await limiter.check('a')).allowed, true, 'admitted once a unit is back')
  }),

  on('fifty checks at once admit exactly the limit', three, async (limiter) => {
    const all = await Promise.all(Array.from({ length: 50 }, () => limiter.check('a')))
    equal(all.filter((decision) => decision.allowed).length, 3, 'admitted')
  }),

  on('decisions are values: later calls do not change them', three, async (limiter) => {
    const all = [await limiter.check('a'), await limiter.check('a'), await limiter.check('a')]
    await limiter.check('a')
    equal(
      all.map((decision) => [decision.allowed, decision.remaining]),
      [
        [true, 2],
        [true, 1],
        [true, 0],
      ],
      'kept',
    )
    equal(
      all.map((decision) => decision.rules[0].remaining),
      [2, 1, 0],
      'kept per rule',
    )
  }),

  on(
    'cost 0 spends nothing and is refused only by a block or debt',
    three,
    async (limiter, clock) => {
      equal((await limiter.check('a', 0)).allowed, true, 'fresh')
      await limiter.check('a', 3)
      equal((await limiter.check('a', 0)).allowed, true, 'empty is not debt')
      await limiter.charge('a', 1)
      const inDebt = await limiter.check('a', 0)
      equal([inDebt.allowed, inDebt.retryAfterMs], [false, 1_000], 'in debt')
      clock.advance(1_000)
      equal((await limiter.check('a', 0)).allowed, true, 'out of debt')
      await limiter.block('a', 10)
      equal((await limiter.check('a', 0)).allowed, false, 'blocked')
    },
  ),

  on('charge leaves debt that has to refill first', three, async (limiter, clock) => {
    await limiter.charge('a', 5)
    const { remaining: left, retryAfterMs, resetAfterMs } = await limiter.peek('a')
    equal([left, retryAfterMs, resetAfterMs], [0, 3_000, 5_000], 'two units of debt')
    clock.advance(2_999.999)
    equal((await limiter.check('a')).allowed, false, 'a microsecond early')
    clock.advance(0.001)
    equal((await limiter.check('a')).allowed, true, 'at the instant named')
  }),

  on('charge may exceed any capacity, and debt ends at a hundred years', three, async (limiter) => {
    for (let i = 0; i < 2; i += 1) await limiter.charge('a', 1_000_000_000_000)
    const { resetAfterMs } = await limiter.peek('a')
    equal(resetAfterMs, 36_525 * 86_400_000, 'resetAfterMs')
  }),

  on('refund undoes a spend, and never exceeds a fresh key', three, async (limiter) => {
    await limiter.check('a', 2)
    await limiter.refund('a', 1)
    equal(await remaining(limiter, 'a'), 2, 'one unit back')
    await limiter.refund('a', 100)
    equal(await remaining(limiter, 'a'), 3, 'full, not more')
    await limiter.refund('nobody', 100)
    equal(await remaining(limiter, 'nobody'), 3, 'nothing to undo')
    equal((await limiter.check('a', 3)).allowed, true, 'the whole burst')
    equal((await limiter.check('a')).allowed, false, 'and no more')
  }),

  on(
    'a leaky bucket ignores a refund, since its slots are assigned',
    leakyBucket({ limit: 1, per: '1s', queue: 1 }),
    async (limiter) => {
      await limiter.check('a', 2)
      await limiter.refund('a', 2)
      equal((await limiter.peek('a')).allowed, false, 'still full')
    },
  ),

  on(
    'a refund lowers only the current count of a window',
    slidingWindowCounter({ limit: 4, per: '1s' }),
    async (limiter, clock) => {
      await limiter.check('a', 4)
      clock.advance(1_500)
      await limiter.check('a', 1)
      await limiter.refund('a', 4)
      equal(await remaining(limiter, 'a'), 2, 'what the previous window still weighs stays')
    },
  ),

  on('a block beats every rule until it ends or is lifted', three, async (limiter, clock) => {
    await limiter.block('a', '10s')
    const blocked = await limiter.check('a')
    equal(
      [blocked.allowed, blocked.source, blocked.retryAfterMs, blocked.remaining],
      [false, 'blocked', 10_000, 0],
      'blocked',
    )
    equal((await limiter.check('b')).allowed, true, 'others are not')
    clock.advance(9_999.999)
    equal((await limiter.check('a')).allowed, false, 'a microsecond early')
    clock.advance(0.001)
    const after = await limiter.check('a')
    equal(
      [after.allowed, after.source, after.remaining],
      [true, 'store', 2],
      'over, and nothing was spent',
    )
    await limiter.block('a', 1_000)
    await limiter.unblock('a')
    equal((await limiter.check('a')).allowed, true, 'lifted')
    await limiter.block('a', 1_000)
    await limiter.reset('a')
    equal((await limiter.check('a', 3)).allowed, true, 'reset lifts it too')
  }),

  on('a key that looks like a pattern is only a key', three, async (limiter) => {
    for (const key of ['a', 'b', '*']) await limiter.check(key)
    await limiter.reset('*')
    equal(
      [await remaining(limiter, 'a'), await remaining(limiter, 'b'), await remaining(limiter, '*')],
      [2, 2, 3],
      'after reset("*")',
    )
  }),

  on('hostile keys stay apart', fixedWindow({ limit: 1, per: '1h' }), async (limiter) => {
    for (const key of hostileKeys)
      equal((await limiter.check(key)).allowed, true, `first ${JSON.stringify(key)}`)
    for (const key of hostileKeys)
      equal((await limiter.check(key)).allowed, false, `second ${JSON.stringify(key)}`)
  }),

  on(
    'several rules spend together or not at all',
    [
      tokenBucket({ limit: 2, per: '1s', name: 'second' }),
      fixedWindow({ limit: 10, per: '1m', name: 'minute' }),
    ],
    async (limiter) => {
      await limiter.check('a', 2)
      for (let i = 0; i < 20; i += 1) await limiter.check('a')
      const refused = await limiter.check('a')
      equal(
        [refused.allowed, refused.rule, refused.retryAfterMs],
        [false, 'second', 500],
        'the rule that refused',
      )
      equal(
        refused.rules.map((rule) => [rule.rule, rule.remaining]),
        [
          ['second', 0],
          ['minute', 8],
        ],
        'the roomy rule was not charged',
      )
      equal(
        [refused.capacity, refused.remaining, refused.resetAfterMs],
        [2, 0, 60_000],
        'least and longest',
      )
    },
  ),

  on(
    'an allowed decision names the rule with the least remaining',
    [
      fixedWindow({ limit: 100, per: '1m', name: 'minute' }),
      tokenBucket({ limit: 5, per: '1s', name: 'second' }),
    ],
    async (limiter) => {
      equal((await limiter.check('a')).rule, 'second', 'rule')
    },
  ),

  on('checkMany decides in order at one instant, or not at all', three, async (limiter) => {
    const requests = ['a', 'b', 'a', 'a', 'a'].map((key) => ({ key }))
    const all = await limiter.checkMany(requests)
    equal(
      all.map((decision) => decision.allowed),
      [true, true, true, true, false],
      'in order',
    )
    await fails(
      () => limiter.checkMany([{ key: 'c', cost: 3 }, { key: '' }]),
      'SLUICE_KEY',
      'one bad request',
    )
    equal(await remaining(limiter, 'c'), 3, 'nothing was spent')
  }),

  on(
    'wait admits callers in order of arrival',
    tokenBucket({ limit: 1, per: '1s' }),
    async (limiter, clock) => {
      const order: string[] = []
      for (const name of ['first', 'second', 'third']) {
        void limiter.wait('a').then(({ allowed }) => order.push(`${name} ${allowed}`))
      }
      for (let i = 0; i < 290 && order.length < 3; i += 1) {
        await new Promise((resolve) => setTimeout(resolve, 0))
        clock.advance(100)
      }
      equal(order, ['first true', 'second true', 'third true'], 'order')
    },
  ),

  on('an unlimited rule keeps no state', [unlimited(), three], async (limiter) => {
    const { capacity, remaining: left, rules } = await limiter.check('a')
    equal(
      [capacity, left, rules[0].remaining],
      [3, 2, Number.POSITIVE_INFINITY],
      'capacity and remaining',
    )
  }),
]
