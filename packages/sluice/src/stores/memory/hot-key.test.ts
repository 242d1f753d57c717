import { describe, expect, it } from 'vitest'
import {
  compactStore,
  createLimiter,
  createPolicy,
  fixedWindow,
  memoryStore,
  tokenBucket,
} from '../../index.ts'
import { manualClock } from '../../testing/index.ts'

const stores = [
  { name: 'memoryStore', make: memoryStore },
  { name: 'compactStore', make: compactStore },
]

// Stores skip the look-up of a key that was found last: the cursor is on its row already. Code that
// moves rows or the cursor must invalidate that.
describe.each(stores)('a hot key on $name', ({ make }) => {
  function hot(maxKeys = 100) {
    const policy = createPolicy({
      tiers: {
        few: tokenBucket({ limit: 5, per: '1m' }),
        many: fixedWindow({ limit: 9, per: '1m' }),
      },
      defaultTier: 'few',
    })
    const store = make({ maxKeys, clock: manualClock() })
    const limiter = createLimiter(policy, { store })
    const left = () => limiter.peek('hot').remaining
    for (let i = 0; i < 3; i += 1) limiter.allow('hot')
    return { policy, limiter, left }
  }

  it('is fresh after a reset, and counts from there', () => {
    const { limiter, left } = hot()
    limiter.reset('hot')
    expect(left()).toBe(5)
    limiter.allow('hot')
    expect(left()).toBe(4)
  })

  it('is fresh after a clear', () => {
    const { limiter, left } = hot()
    limiter.clear()
    limiter.allow('hot')
    expect(left()).toBe(4)
  })

  it('keeps its units when rows get another column, and when a shard grows', () => {
    const { limiter, left } = hot()
    limiter.allow('other', 1, { tier: 'many' })
    expect(left()).toBe(2)
    limiter.allow('hot')
    for (let i = 0; i < 90; i += 1) limiter.allow(`key ${i}`)
    expect(left()).toBe(1)
  })

  it('gets new limits in its own row after a look-up of another key', () => {
    const { policy, limiter, left } = hot(1_000_000)
    for (let i = 0; i < 30; i += 1) {
      limiter.allow('hot', 0)
      limiter.allow('hot', 0)
      limiter.peek(`stranger ${i}`)
      policy.setOverride('hot', tokenBucket({ limit: 10 + i, per: '1m' }))
      limiter.allow('hot', 0)
      expect(left()).toBe(7 + i)
    }
  })

  it('is not forgiven when it is evicted', () => {
    const { limiter } = hot(4)
    for (let i = 0; i < 40; i += 1) limiter.charge(`key ${i}`, 5)
    expect([1, 2, 3].map(() => limiter.allow('hot'))).toEqual([false, false, false])
  })

  it('is not confused with keys that are looked up in between', () => {
    const { limiter, left } = hot()
    expect(limiter.size()).toBe(1)
    expect(limiter.peek('stranger').remaining).toBe(5)
    expect(left()).toBe(2)
    limiter.block('other', '1s')
    expect([limiter.allow('other'), limiter.allow('stranger'), limiter.allow('hot')]).toEqual([
      false,
      true,
      true,
    ])
    expect(limiter.size()).toBe(3)
    expect(left()).toBe(1)
  })
})
