import { fixedWindow } from '../algorithms/fixed-window.ts'
import { slidingWindowLog } from '../algorithms/sliding-window-log.ts'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import { createPolicy } from '../limiter/policy.ts'
import { equal, fails } from './equal.ts'
import { limiterOn } from './limiter-on.ts'
import type { StoreCase } from './store-suite.ts'

const three = tokenBucket({ limit: 3, per: '3s' })

/** tableCases check tiers, and limiters that share a store. */
export const tableCases: readonly StoreCase[] = [
  {
    name: 'used units are carried over to another tier, both ways',
    async run({ store, clock }) {
      const policy = createPolicy({
        tiers: {
          free: tokenBucket({ limit: 10, per: '1m' }),
          pro: [
            tokenBucket({ limit: 600, per: '1m', burst: 100 }),
            fixedWindow({ limit: 1_000, per: '1d' }),
          ],
        },
        defaultTier: 'free',
      })
      const limiter = limiterOn(policy, { store, name: 'tiers' })
      await limiter.check('a', 8)
      policy.setTier('a', 'pro')
      equal((await limiter.peek('a')).remaining, 92, 'an upgrade keeps what was used')
      await limiter.check('a', 12)
      policy.setTier('a', 'free')
      const back = await limiter.peek('a')
      equal(
        [back.allowed, back.remaining, back.retryAfterMs],
        [false, 0, 66_000],
        'a downgrade too',
      )
      policy.setTier('a', 'pro')
      equal((await limiter.peek('a')).remaining, 80, 'and switching back frees nothing')
      clock.advance(2_000)
      equal((await limiter.peek('a')).remaining, 100, 'it refills at the new rate')
    },
  },

  {
    name: 'limiters of different names on one store are independent',
    async run({ store }) {
      const [one, two] = ['one', 'two'].map((name) => limiterOn(three, { store, name }))
      await one.check('a', 3)
      equal((await two.peek('a')).remaining, 3, 'the other limiter')
      await fails(
        () => limiterOn(fixedWindow({ limit: 1, per: '1s' }), { store, name: 'one' }),
        'SLUICE_STORE_MISMATCH',
        'other rules',
      )
      const changed = limiterOn(tokenBucket({ limit: 6, per: '3s' }), { store, name: 'one' })
      equal((await changed.peek('a')).remaining, 3, 'a new limit keeps what was used')
    },
  },
]

/** refusedCase checks that a store without lists refuses the sliding window log. */
export const refusedCase: StoreCase = {
  name: 'the sliding window log is refused at construction',
  run: ({ store }) =>
    fails(
      () => limiterOn(slidingWindowLog({ limit: 1, per: '1s' }), { store }),
      'SLUICE_RULE_UNSUPPORTED',
      'createLimiter',
    ),
}
