import { tokenBucket } from '../algorithms/token-bucket.ts'
import { equal } from './equal.ts'
import { hostileKeys } from './hostile-keys.ts'
import { limiterOn } from './limiter-on.ts'
import type { StoreCase } from './store-suite.ts'

const three = tokenBucket({ limit: 3, per: '3s' })

/** clearCases check `clear` and `size`, which need a list of keys. */
export const clearCases: readonly StoreCase[] = [
  {
    name: 'clear lifts blocks and makes every key fresh, of its own limiter only',
    async run({ store }) {
      const [one, two] = ['one', 'two'].map((name) => limiterOn(three, { store, name }))
      await one.check('a', 3)
      await one.block('b', 1_000)
      await two.check('a', 2)
      await one.clear()
      equal((await one.check('a', 3)).allowed, true, 'a used key')
      equal((await one.check('b', 3)).allowed, true, 'a blocked key')
      equal((await two.peek('a')).remaining, 1, 'a key of the other limiter')
    },
  },
  {
    name: 'size counts keys that are in use or blocked, hostile ones too',
    maxKeys: 64,
    async run({ store, clock }) {
      const limiter = limiterOn(three, { store, name: 'size' })
      for (const key of hostileKeys) await limiter.check(key)
      await limiter.peek('peeked')
      await limiter.block('blocked', 10_000)
      equal(await limiter.size(), hostileKeys.length + 1, 'used and blocked keys')
      await limiter.clear()
      equal(await limiter.size(), 0, 'after clear')
      clock.advance(1)
      equal((await limiter.peek('blocked')).remaining, 3, 'a key after clear')
    },
  },
]
