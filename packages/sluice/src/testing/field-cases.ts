import { concurrency } from '../algorithms/concurrency.ts'
import { fixedWindow } from '../algorithms/fixed-window.ts'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import { unlimited } from '../algorithms/unlimited.ts'
import { createPolicy } from '../limiter/policy.ts'
import type { Limiter } from '../limiter/verbs.ts'
import { equal } from './equal.ts'
import { limiterOn } from './limiter-on.ts'
import type { StoreCase } from './store-suite.ts'

const rules = [
  tokenBucket({ limit: 3, per: '3s', by: 'user', name: 'requests' }),
  fixedWindow({ limit: 10, per: '1m', by: 'org', name: 'calls' }),
  fixedWindow({ limit: 12, per: '1m', by: 'global', name: 'everyone' }),
  concurrency({ limit: 2, hold: '8s', by: 'user' }),
] as const

type FieldLimiter = Limiter<{ readonly user: string | null; readonly org: string | null }>

const on = (
  name: string,
  run: (limiter: FieldLimiter, clock: { advance(ms: number): void }) => Promise<void>,
): StoreCase => ({
  name,
  run: ({ store, clock }) => run(limiterOn(rules, { store, name: 'fields' }) as never, clock),
})

/** Returns the remaining units of each rule of a key. */
async function left(limiter: FieldLimiter, user: string | null, org: string | null) {
  return (await limiter.peek({ user, org })).rules.map((rule) => rule.remaining)
}

/** fieldCases check decisions over several fields of a key. */
export const fieldCases: readonly StoreCase[] = [
  on('a call charges no field if the rule of one field refuses', async (limiter) => {
    await limiter.charge({ user: null, org: 'full' }, 10)
    const { allowed, decision } = await limiter.tryAcquire({ user: 'a', org: 'full' })
    equal([allowed, decision.rule], [false, 'calls'], 'refused')
    equal(await left(limiter, 'a', 'full'), [3, 0, 2, 2], 'nothing was charged')
    equal((await limiter.tryAcquire({ user: 'a', org: 'x' })).allowed, true, 'another org')
    equal(await left(limiter, 'a', 'x'), [2, 9, 1, 1], 'all four were charged')
    equal(await left(limiter, 'x', 'a'), [3, 10, 1, 2], 'the same texts in other fields')
  }),

  on('a field that is null has no rules', async (limiter) => {
    for (let i = 0; i < 4; i += 1) {
      const { allowed } = await limiter.tryAcquire({ user: null, org: 'x' })
      equal(allowed, true, `without a user, call ${i}`)
    }
    equal(await left(limiter, null, 'x'), [6, 8], 'of the org, and of all')
    equal(await left(limiter, 'null', 'x'), [3, 6, 8, 2], 'of a user of that name')
  }),

  on('a permit ends its holds and refunds its spends in each field', async (limiter) => {
    const cost = { requests: 1, calls: 4, everyone: 2, concurrency: 2 }
    const permit = await limiter.tryAcquire({ user: 'a', org: 'x' }, cost)
    if (!permit.allowed) throw new Error('refused')
    equal(await left(limiter, 'a', 'x'), [2, 6, 10, 0], 'taken')
    await permit.settle({ ...cost, calls: 1, everyone: 3 })
    equal(await left(limiter, 'a', 'x'), [2, 9, 9, 2], 'settled')
    await permit.cancel()
    equal(await left(limiter, 'a', 'x'), [2, 9, 9, 2], 'and not again')
  }),

  on(
    'blocks and resets concern one field, with any values of the others',
    async (limiter, clock) => {
      await limiter.tryAcquire({ user: 'a', org: 'x' })
      await limiter.block({ org: 'x' }, '1s')
      const blocked = await limiter.peek({ user: 'b', org: 'x' })
      equal([blocked.source, blocked.retryAfterMs], ['blocked', 1_000], 'of another user')
      equal((await limiter.peek({ user: 'a', org: 'y' })).allowed, true, 'another org')
      equal((await limiter.peek({ user: 'a', org: null })).allowed, true, 'without an org')
      await limiter.reset({ user: 'a' })
      equal(await left(limiter, 'a', 'x'), [3, 9, 11, 2], 'reset')
      clock.advance(1_000)
      equal((await limiter.peek({ user: 'b', org: 'x' })).source, 'store', 'when it has ended')
    },
  ),

  {
    name: 'a block of a field holds in a tier that does not limit that field',
    async run({ store }) {
      const policy = createPolicy({
        tierBy: 'user',
        tiers: { staff: unlimited(), free: tokenBucket({ limit: 1, per: '1m', by: 'user' }) },
        defaultTier: 'free',
        rules: fixedWindow({ limit: 100, per: '1m', by: 'org' }),
      })
      const limiter = limiterOn(policy, { store, name: 'staff' }) as never as FieldLimiter
      const key = { user: 'a', org: 'x' }
      await limiter.block({ user: 'a' }, '1h')
      equal((await limiter.check(key, 1, { tier: 'free' })).source, 'blocked', 'free')
      equal((await limiter.check(key, 1, { tier: 'staff' })).source, 'blocked', 'staff')
    },
  },
]
