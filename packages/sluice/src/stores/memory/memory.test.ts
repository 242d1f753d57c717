import { describe, expect, it, vi } from 'vitest'
import {
  createLimiter,
  fixedWindow,
  memoryStore,
  slidingWindowLog,
  tokenBucket,
} from '../../index.ts'
import { manualClock, storeSuite } from '../../testing/index.ts'

const make = (options = {}) => {
  const clock = manualClock()
  return { clock, store: memoryStore({ ...options, clock }) }
}
const steps = Number(process.env.SLUICE_STEPS ?? 10_000)

describe('memoryStore keeps the contract of stores:', () => {
  for (const { name, run } of storeSuite(make, { steps })) it(name, run, 60_000 + steps)
})

describe('memoryStore', () => {
  it('never holds more than maxKeys, and counts evictions', () => {
    const { store } = make({ maxKeys: 100 })
    const limiter = createLimiter(fixedWindow({ limit: 10_000, per: '1h' }), { store })
    for (let i = 0; i < 1_000; i += 1) limiter.check(`key ${i}`)
    expect(limiter.stats()).toMatchObject({ rows: 100, maxKeys: 100, evictions: 900 })
    expect(limiter.size()).toBe(100)
  })

  it('evicts no row while fresh rows can be reused', () => {
    const { store, clock } = make({ maxKeys: 100 })
    const limiter = createLimiter(tokenBucket({ limit: 10, per: '1s' }), { store })
    for (let i = 0; i < 1_000; i += 1) {
      limiter.check(`key ${i}`)
      clock.advance(2)
    }
    expect(limiter.stats()).toMatchObject({ evictions: 0, floored: 0 })
  })

  it('lets unknown keys start with the floor, which refills', () => {
    const { store, clock } = make({ maxKeys: 1 })
    const limiter = createLimiter(tokenBucket({ limit: 10, per: '10s' }), { store })
    limiter.check('a', 4)
    limiter.check('b', 1)
    // a was evicted with 4 units used, so the next unknown key starts with 4 used.
    expect(limiter.peek('a').remaining).toBe(6)
    expect(limiter.peek('stranger').remaining).toBe(6)
    expect(limiter.stats().evictions).toBe(1)
    clock.advance(4_000)
    expect(limiter.peek('stranger').remaining).toBe(10)
  })

  it('frees the rows of a large table once they are fresh', () => {
    const { store, clock } = make()
    const limiter = createLimiter(fixedWindow({ limit: 5, per: '1s' }), { store })
    const insert = (name: string) => {
      for (let i = 0; i < 100_000; i += 1) limiter.allow(`${name} ${i}`)
    }
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) {
      insert(name)
      clock.advance(1_000)
    }
    expect(limiter.stats().rows).toBeLessThan(400_000)
    expect(limiter.stats().evictions).toBe(0)
  })

  it('sets no timers, however many keys and blocks there are', () => {
    const timeout = vi.spyOn(globalThis, 'setTimeout')
    const interval = vi.spyOn(globalThis, 'setInterval')
    const limiter = createLimiter(tokenBucket({ limit: 1, per: '1s' }), { store: memoryStore() })
    for (let i = 0; i < 10_000; i += 1) {
      limiter.check(`key ${i}`)
      limiter.block(`blocked ${i}`, '1d')
    }
    expect([timeout.mock.calls.length, interval.mock.calls.length]).toEqual([0, 0])
    timeout.mockRestore()
    interval.mockRestore()
  })

  it('drops up to two ended blocks at every new one, also behind a long one', () => {
    const { store, clock } = make()
    const limiter = createLimiter(tokenBucket({ limit: 1, per: '1s' }), { store })
    limiter.block('long', '365d')
    for (let i = 0; i < 100_000; i += 1) {
      limiter.block(`key ${i}`, 1)
      clock.advance(1)
    }
    expect(limiter.stats().blocked).toBeLessThan(10)
  })

  it('keeps a log of 10,000 entries and 200,000 charges without copying it on every hit', () => {
    const { store, clock } = make()
    const limiter = createLimiter(slidingWindowLog({ limit: 10_000, per: '1m' }), { store })
    let admitted = 0
    for (let i = 0; i < 30_000; i += 1) {
      if (limiter.allow('a')) admitted += 1
      clock.advance(0.001)
    }
    expect(admitted).toBe(10_000)
    for (let i = 0; i < 200_000; i += 1) {
      limiter.charge('a', 1)
      clock.advance(0.001)
    }
    expect(limiter.peek('a')).toMatchObject({ allowed: false, remaining: 0 })
    clock.advance(60_000)
    expect(limiter.peek('a').remaining).toBe(10_000)
  })

  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '5', 16_000_001])(
    'refuses maxKeys %o',
    (maxKeys) => {
      expect(() => memoryStore({ maxKeys: maxKeys as never })).toThrow(
        expect.objectContaining({ code: 'SLUICE_OPTION' }),
      )
    },
  )

  it('refuses an unknown option', () => {
    expect(() => memoryStore({ maxkeys: 5 } as never)).toThrow(
      expect.objectContaining({ code: 'SLUICE_OPTION' }),
    )
  })
})
