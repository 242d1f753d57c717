import { isDeepStrictEqual } from 'node:util'
import { describe, expect, it } from 'vitest'
import { createLimiter, fixedWindow, gcra, slidingWindowCounter, tokenBucket } from '../../index.ts'
import { manualClock } from '../../testing/index.ts'
import { HEAD_BYTES } from './directory.ts'
import { movedFrom, regionOf } from './region.ts'
import { sharedMemoryStore } from './shared-memory.ts'
import { createSharedTable } from './shared-table.ts'

const make = (maxKeys: number) => {
  const clock = manualClock()
  return { clock, store: sharedMemoryStore({ maxKeys, clock }) }
}
const numbers = (count: number) => Array.from({ length: count }, (_, i) => i)
const column = { name: 'token-bucket', algorithm: 'token-bucket', grows: false, cells: 1, at: 0 }

describe('a new key in a full sharedMemoryStore', () => {
  const rules = [
    tokenBucket({ limit: 10, per: '1m' }),
    gcra({ limit: 7, per: '1s', burst: 3 }),
    fixedWindow({ limit: 10, per: '1m' }),
    slidingWindowCounter({ limit: 10, per: '1m' }),
  ]
  const cases = rules.flatMap((rule) => [1, 2, 4, 40].map((maxKeys) => ({ rule, maxKeys })))

  it.each(cases)(
    'gets the decision that peek predicted: $rule.text, maxKeys $maxKeys',
    ({ rule, maxKeys }) => {
      const { store, clock } = make(maxKeys)
      const limiter = createLimiter(rule, { store })
      const verbs = [limiter.allow, (key: string, cost: number) => limiter.check(key, cost).allowed]
      const wrong = numbers(600).filter((i) => {
        clock.advance(i % 5)
        const isExpected = limiter.peek(`key ${i}`, 3).allowed
        const before = [limiter.peek(`other ${i}`, 3), limiter.stats()]
        const isAllowed = verbs[i % 2](`key ${i}`, 3)
        const after = [limiter.peek(`other ${i}`, 3), limiter.stats()]
        return isAllowed !== isExpected || (!isAllowed && !isDeepStrictEqual(before, after))
      })
      expect(wrong).toEqual([])
      expect(limiter.stats().rows).toBe(maxKeys)
      expect(limiter.stats().evictions).toBeGreaterThan(10)
    },
  )

  it('evicts no row when it is refused', () => {
    const { store } = make(4)
    const limiter = createLimiter(tokenBucket({ limit: 10, per: '1h' }), { store })
    numbers(40).forEach((i) => void limiter.charge(`key ${i}`, 10))
    numbers(4).forEach((i) => void limiter.reset(`client ${i}`))
    const left = () => numbers(4).map((i) => limiter.peek(`client ${i}`).remaining)
    const before = left()
    const refused = numbers(400).filter((i) => !limiter.allow(`stranger ${i}`))
    expect(refused).toHaveLength(400)
    expect(left()).toEqual(before)
  })

  it('raises the floor of the shard from which it evicts', () => {
    const { store } = make(1)
    const limiter = createLimiter(tokenBucket({ limit: 10, per: '1h' }), { store })
    const forgiven = numbers(200).filter((i) => {
      limiter.reset(`spender ${i}`)
      limiter.charge(`spender ${i}`, 10)
      limiter.reset(`newcomer ${i}`)
      limiter.charge(`newcomer ${i}`, 1)
      return limiter.peek(`spender ${i}`).remaining > 0
    })
    expect(forgiven).toEqual([])
    expect(limiter.stats().rows).toBe(1)
  })

  it('leaves no lock behind when the stack runs out', () => {
    const { store } = make(40)
    const limiter = createLimiter(tokenBucket({ limit: 1_000_000, per: '1h' }), { store })
    const region = regionOf(40, [column])
    const words = new Int32Array(store.handle.buffer, HEAD_BYTES, region.bytes / 4)
    let calls = 0
    let overflows = 0
    const dive = (): void => {
      try {
        dive()
      } catch {
        overflows += 1
      }
      try {
        limiter.charge(`key ${calls++}`, 1)
      } catch {
        overflows += 1
      }
    }
    for (let i = 0; i < 2; i += 1) dive()
    limiter.charge('alice', 1)
    expect(overflows).toBeGreaterThan(2)
    expect(limiter.stats().rows).toBeLessThanOrEqual(40)
    expect(movedFrom(region, words)).toBe(0)
  })

  it('is decided again, and nothing is lost, if another thread moves its bucket meanwhile', () => {
    const rule = tokenBucket({ limit: 10, per: '1h' })
    const region = regionOf(300, [column])
    const buffer = new SharedArrayBuffer(region.bytes)
    const [words, cells] = [new Int32Array(buffer), new Float64Array(buffer)]
    const place = { region, words, cells, secret: Int32Array.of(1, 2) }
    let isOnce = false
    let meanwhile = () => {}
    const open = (locked: () => void) =>
      createSharedTable(place, [rule.algorithm], () => 1e15, locked)
    const other = open(() => {})
    const table = open(() => {
      if (isOnce) return
      isOnce = true
      meanwhile()
    })
    const [set, otherSet] = [table.use([rule]), other.use([rule])]
    const admitted = numbers(20).filter((i) => {
      other.clear()
      for (const j of numbers(300)) other.charge(otherSet, `known ${i} ${j}`, 1, 1e15)
      meanwhile = () => {
        const keys = [`newcomer ${i}`, ...numbers(8).map((j) => `other ${i} ${j}`)]
        for (const key of keys) other.charge(otherSet, key, 10, 1e15)
      }
      isOnce = false
      return table.allow(set, `newcomer ${i}`, 1, 1e15)
    })
    expect(admitted).toEqual([])
    expect(movedFrom(region, words)).toBeGreaterThan(10)
    const { freeAt, places, buckets } = region
    const isTaken = (state: number, at: number) => state === 1 || (state === 0 && at < buckets)
    expect([...words.subarray(freeAt, freeAt + places)].filter(isTaken)).toHaveLength(buckets)
  })
})
