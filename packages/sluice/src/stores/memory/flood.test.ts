import { describe, expect, it } from 'vitest'
import {
  compactStore,
  createLimiter,
  defineAlgorithm,
  defineRule,
  memoryStore,
  tokenBucket,
} from '../../index.ts'
import { manualClock } from '../../testing/index.ts'
import { sharedMemoryStore } from '../shared-memory/shared-memory.ts'

const stores = [
  { name: 'memoryStore', make: memoryStore },
  { name: 'compactStore', make: compactStore },
]
const MAX_KEYS = 20_000

/** Creates a limiter whose store unknown keys have filled ten times over. */
function flooded(make: typeof memoryStore, throttled: readonly string[]) {
  const store = make({ maxKeys: MAX_KEYS, clock: manualClock() })
  const limiter = createLimiter(tokenBucket({ limit: 1_000, per: '1d' }), { store })
  for (const key of throttled) limiter.charge(key, 1_000)
  for (let i = 0; i < 10 * MAX_KEYS; i += 1) limiter.allow(`stranger ${i}`)
  return limiter
}

describe.each(stores)('a flood of unknown keys on $name', ({ make }) => {
  it('never frees a throttled client', () => {
    const throttled = Array.from({ length: 1_000 }, (_, i) => `throttled ${i}`)
    const limiter = flooded(make, throttled)
    expect(throttled.filter((key) => limiter.allow(key))).toEqual([])
  })

  it('costs other keys little when throttled keys were inserted one after the other', () => {
    const throttled = Array.from({ length: 100 }, (_, i) => `throttled ${i}`)
    const limiter = flooded(make, throttled)
    expect(throttled.filter((key) => limiter.allow(key))).toEqual([])
    expect(limiter.peek('new').remaining).toBeGreaterThan(900)
  })

  // Evicted rows are nearly fresh, so they raise the floor little: by
  // 1 to 2.5 units each time the store is filled. With the best of only four rows it would be 6.7.
  it('costs other unknown keys little', () => {
    const limiter = flooded(make, [])
    const used = Array.from({ length: 200 }, (_, i) => 1_000 - limiter.peek(`new ${i}`).remaining)
    expect(Math.max(...used)).toBeLessThan(45)
    expect(Math.max(...used)).toBeGreaterThan(0)
  })
})

/** A lifetime quota: used units never come back. */
const lifetime = defineAlgorithm({
  name: 'lifetime',
  cells: () => 1,
  waitUs: (cells, at, rule, cost) => (cells[at] + cost <= rule.limit ? 0 : 1e9),
  spend(cells, at, _rule, cost) {
    cells[at] += cost
  },
  remaining: (cells, at, rule) => Math.max(0, rule.limit - cells[at]),
  freshAtUs: (cells, at) => (cells[at] > 0 ? Number.POSITIVE_INFINITY : 0),
  merge(cells, at, other, otherAt) {
    cells[at] = Math.max(cells[at], other[otherAt])
  },
})

describe.each([...stores, { name: 'sharedMemoryStore', make: sharedMemoryStore }])(
  'keys that never refill, on $name',
  ({ make }) => {
    it('evict each other, and eviction forgives nothing', () => {
      const rule = defineRule(lifetime, { limit: 2, per: '1s' })
      const forgiving: number[] = []
      for (let maxKeys = 1; maxKeys <= 20; maxKeys += 1) {
        const limiter = createLimiter(rule, { store: make({ maxKeys }) })
        limiter.charge('throttled', 2)
        for (let i = 0; i < 60; i += 1) limiter.allow(`stranger ${i}`)
        if (limiter.allow('throttled') || limiter.stats().rows > maxKeys) forgiving.push(maxKeys)
      }
      expect(forgiving).toEqual([])
    })
  },
)
