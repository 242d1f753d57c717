import { describe, expect, it } from 'vitest'
import { compactStore, createLimiter, memoryStore, tokenBucket } from '../index.ts'
import { manualClock } from '../testing/index.ts'

const stores = [
  { name: 'memoryStore', make: memoryStore },
  { name: 'compactStore', make: compactStore },
]
const MAX_KEYS = 20_000

/** A store that has been filled by strangers ten times over, and what they did to others. */
function flooded(make: typeof memoryStore, throttled: readonly string[]) {
  const store = make({ maxKeys: MAX_KEYS, clock: manualClock() })
  const limiter = createLimiter(tokenBucket({ limit: 1_000, per: '1d' }), { store })
  for (const key of throttled) limiter.charge(key, 1_000)
  for (let i = 0; i < 10 * MAX_KEYS; i += 1) limiter.allow(`stranger ${i}`)
  return limiter
}

describe.each(stores)('a flood of strangers on $name', ({ make }) => {
  it('never frees a throttled client', () => {
    const throttled = Array.from({ length: 1_000 }, (_, i) => `throttled ${i}`)
    const limiter = flooded(make, throttled)
    expect(throttled.filter((key) => limiter.allow(key))).toEqual([])
  })

  it('takes little from others where throttled clients came one after the other', () => {
    const throttled = Array.from({ length: 100 }, (_, i) => `throttled ${i}`)
    const limiter = flooded(make, throttled)
    expect(throttled.filter((key) => limiter.allow(key))).toEqual([])
    expect(limiter.peek('new').remaining).toBeGreaterThan(900)
  })

  // Those that have to go are near to fresh, so the floor that they leave behind is low: it rises by
  // 1 to 2.5 units each time the store is filled. If the nearest of four went it would be 6.7.
  it('takes little from other strangers', () => {
    const limiter = flooded(make, [])
    const used = Array.from({ length: 200 }, (_, i) => 1_000 - limiter.peek(`new ${i}`).remaining)
    expect(Math.max(...used)).toBeLessThan(45)
    expect(Math.max(...used)).toBeGreaterThan(0)
  })
})
