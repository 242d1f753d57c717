import { describe, expect, it } from 'vitest'
import {
  calendarWindow,
  createLimiter,
  createPolicy,
  defineAlgorithm,
  defineRule,
  fixedWindow,
  gcra,
  slidingWindowLog,
  tokenBucket,
  unlimited,
} from '../../index.ts'
import { manualClock, storeSuite } from '../../testing/index.ts'
import { HEAD_BYTES } from './directory.ts'
import { movedFrom, regionOf } from './region.ts'
import { attachSharedMemory, sharedMemoryStore } from './shared-memory.ts'

const make = (options = {}) => {
  const clock = manualClock()
  return { clock, store: sharedMemoryStore({ maxKeys: 10_000, ...options, clock }) }
}
const steps = Number(process.env.SLUICE_STEPS ?? 10_000)
const withCode = (code: string) => expect.objectContaining({ code })
const rule = tokenBucket({ limit: 10, per: '1m' })

describe('sharedMemoryStore keeps the contract of stores:', () => {
  const options = { steps, without: ['sliding-window-log'], fields: 'in turn' } as const
  // Each field has a table of its own.
  const makeLarge = (given = {}) => make({ maxBytes: 2 ** 26, ...given })
  for (const { name, run } of storeSuite(makeLarge, options)) it(name, run, 60_000 + steps)
})

describe('sharedMemoryStore', () => {
  it('never holds more than maxKeys, and counts evictions', () => {
    for (const maxKeys of [1, 2, 100, 5_000, 20_000]) {
      const { store } = make({ maxKeys })
      const limiter = createLimiter(fixedWindow({ limit: 10_000_000, per: '1h' }), { store })
      for (let i = 0; i < 3 * maxKeys; i += 1) limiter.allow(`key ${i}`)
      expect(limiter.stats()).toMatchObject({ rows: maxKeys, maxKeys, evictions: 2 * maxKeys })
      expect(limiter.size()).toBe(maxKeys)
    }
  })

  it('keeps maxKeys keys apart while it removes rows', () => {
    const count = 300_000
    const { store } = make({ maxKeys: count })
    const limiter = createLimiter(gcra({ limit: 100, per: '1h' }), { store })
    for (let i = 0; i < count; i += 1) limiter.charge(`key ${i}`, (i % 50) + 1)
    for (let i = 0; i < count; i += 3) limiter.reset(`key ${i}`)
    let wrong = 0
    for (let i = 0; i < count; i += 1) {
      const used = i % 3 === 0 ? 0 : (i % 50) + 1
      if (limiter.peek(`key ${i}`).remaining !== 100 - used) wrong += 1
    }
    expect(wrong).toBe(0)
    expect(limiter.size()).toBe(200_000)
    expect(limiter.stats()).toMatchObject({ rows: 200_000, evictions: 0 })
  })

  it('takes at most 40 bytes per key with a one-number rule, at 100,000 keys and at a million', () => {
    for (const maxKeys of [100_000, 1_000_000]) {
      const { store } = make({ maxKeys })
      createLimiter(rule, { store })
      expect(store.handle.buffer.byteLength / maxKeys).toBeLessThan(40)
    }
  })

  it('keeps many blocks until they end or are lifted, and never evicts them', () => {
    const { store, clock } = make({ maxKeys: 1_000 })
    const limiter = createLimiter(rule, { store })
    for (let i = 0; i < 5_000; i += 1) limiter.block(`key ${i}`, '1h')
    for (let i = 0; i < 5_000; i += 1) limiter.allow(`other ${i}`)
    const blocked = () =>
      Array.from({ length: 5_000 }, (_, i) => limiter.peek(`key ${i}`)).filter(
        ({ source }) => source === 'blocked',
      ).length
    expect(blocked()).toBe(5_000)
    expect(limiter.stats().blocked).toBe(5_000)
    for (let i = 0; i < 1_000; i += 1) limiter.unblock(`key ${i}`)
    expect(blocked()).toBe(4_000)
    clock.advance(3_600_000)
    expect(blocked()).toBe(0)
    expect(limiter.size()).toBe(0)
    limiter.clear()
    expect(limiter.stats()).toMatchObject({ rows: 0, blocked: 0 })
  })

  it('never fills a bucket with blocks, even when they are renewed', () => {
    const { store, clock } = make({ maxKeys: 1_000 })
    const limiter = createLimiter(rule, { store })
    let refused = 0
    for (const duration of ['1ms', '1h'] as const) {
      for (let i = 0; i < 40_000; i += 1) {
        try {
          limiter.block(`key ${i}`, duration)
        } catch {
          refused += 1
        }
        if (duration === '1ms' && i % 1_000 === 0) clock.advance(2)
      }
    }
    expect(refused).toBeGreaterThan(0)
    for (let i = 0; i < 1_000; i += 1) limiter.allow(`new ${i}`)
    expect(limiter.stats().rows).toBeLessThanOrEqual(1_000)
  })

  it('counts ended blocks correctly', () => {
    const { store, clock } = make({ maxKeys: 100 })
    const limiter = createLimiter(rule, { store })
    for (let round = 0; round < 20; round += 1) {
      for (let i = 0; i < 1_000; i += 1) limiter.block(`key ${i}`, '1ms')
      clock.advance(2)
      for (let i = 0; i < 1_000; i += 1) limiter.charge(`key ${i}`, 1)
    }
    for (let i = 0; i < 1_000; i += 1) limiter.block(`key ${i}`, '1h')
    const passed = Array.from({ length: 1_000 }, (_, i) => limiter.allow(`key ${i}`))
    expect(passed).not.toContain(true)
    expect(limiter.stats().blocked).toBe(1_000)
  })

  it('throws SLUICE_STORE_FULL when there is no room for another block', () => {
    const { store } = make({ maxKeys: 1 })
    const limiter = createLimiter(rule, { store })
    const block = () => {
      for (let i = 0; i < 20_000; i += 1) limiter.block(`key ${i}`, '1h')
    }
    expect(block).toThrow(withCode('SLUICE_STORE_FULL'))
    expect(limiter.allow('free to go')).toBe(true)
  })

  it('forgives nothing when keys of fifty different limits are evicted', () => {
    const { store } = make({ maxKeys: 2 })
    const tiers = Object.fromEntries(
      Array.from({ length: 50 }, (_, i) => [
        `tier ${i}`,
        tokenBucket({ limit: 10 + i, per: '1h' }),
      ]),
    )
    const limiter = createLimiter(createPolicy({ tiers, defaultTier: 'tier 0' }), { store })
    const keys = Array.from({ length: 2_000 }, (_, i) => i)
    for (const i of keys) limiter.charge(`key ${i}`, 10, { tier: `tier ${i % 50}` })
    const forgiven = keys.filter(
      (i) => limiter.peek(`key ${i}`, 1, { tier: `tier ${i % 50}` }).remaining > i % 50,
    )
    expect(forgiven).toEqual([])
    expect(limiter.stats().evictions).toBeGreaterThan(1_900)
  })

  it('forgives no debt, even if its limits do not fit into the floor', () => {
    const { store, clock } = make({ maxKeys: 1 })
    const tiers = Object.fromEntries(
      Array.from({ length: 200 }, (_, i) => [`${i}`, tokenBucket({ limit: 100 + i, per: '1h' })]),
    )
    const limiter = createLimiter(createPolicy({ tiers, defaultTier: '0' }), { store })
    limiter.charge('debtor', 5_000)
    for (let i = 0; i < 2_000; i += 1) {
      limiter.charge(`key ${i}`, 5_000, { tier: `${i % 200}` })
    }
    limiter.charge('debtor', 1)
    clock.advance(10 * 3_600_000)
    expect(limiter.peek('debtor').remaining).toBe(0)
  })

  it('uses up no tags for floors', () => {
    const { store } = make({ maxKeys: 30 })
    const names = ['a', 'b', 'c']
    const bucket = (name: string, i: number) => tokenBucket({ limit: 5 + i, per: '1h', name })
    const tiers = Object.fromEntries(names.map((name) => [name, bucket(name, 0)]))
    const policy = createPolicy({ tiers, defaultTier: 'a' })
    const limiter = createLimiter(policy, { store })
    for (let i = 0; i < 60; i += 1) policy.setOverride(`o ${i}`, bucket(names[i % 3], i))
    const check = () => {
      for (let i = 0; i < 20_000; i += 1) {
        limiter.check(i % 2 === 0 ? `o ${i % 60}` : `key ${i % 97}`, 1, { tier: names[i % 3] })
      }
    }
    expect(check).not.toThrow()
    expect(limiter.stats().evictions).toBeGreaterThan(0)
  })

  it('leaves no lock behind when the stack overflows during a call', () => {
    const { store } = make()
    const limiter = createLimiter(rule, { store })
    const region = regionOf(10_000, [{ name: '', algorithm: '', grows: false, cells: 1, at: 0 }])
    const words = new Int32Array(store.handle.buffer, HEAD_BYTES, region.bytes / 4)
    let overflows = 0
    const dive = (): void => {
      try {
        dive()
      } catch {
        overflows += 1
      }
      try {
        limiter.charge('alice', 1)
      } catch {
        overflows += 1
      }
    }
    for (let i = 0; i < 30; i += 1) dive()
    limiter.charge('alice', 1)
    expect(overflows).toBeGreaterThan(30)
    expect(movedFrom(region, words)).toBe(0)
  })

  it('refuses to list keys, since it keeps none', () => {
    const limiter = createLimiter(rule, { store: make().store })
    limiter.check('a')
    expect(() => [...limiter.entries()]).toThrow(withCode('SLUICE_NOT_LISTABLE'))
  })

  it('has room for rules in the time zones with the longest names', () => {
    const zone = 'America/Argentina/Buenos_Aires'
    const rule = calendarWindow({ limit: 10_000_000, per: 'year', zone, startsOn: '02-29' })
    const limiter = createLimiter(rule, { store: make().store })
    limiter.check('alice', 2)
    expect(limiter.check('alice').remaining).toBe(10_000_000 - 3)
  })

  it('refuses a list in a tier or an override as well', () => {
    const log = slidingWindowLog({ limit: 1, per: '1s' })
    const unsupported = withCode('SLUICE_RULE_UNSUPPORTED')
    const both = createPolicy({ tiers: { free: rule, pro: log } })
    expect(() => createLimiter(both, { store: make().store })).toThrow(unsupported)
    const policy = createPolicy({ tiers: { free: rule }, defaultTier: 'free' })
    const limiter = createLimiter(policy, { store: make().store })
    policy.setOverride('a', log)
    expect(() => limiter.check('a')).toThrow(unsupported)
  })

  it('supports user-defined algorithms, and limiters without state', () => {
    const three = defineAlgorithm({
      name: 'three',
      cells: () => 3,
      waitUs: (cells, at, { limit }, cost) => (cells[at + 2] + cost <= limit ? 0 : 1),
      spend(cells, at, _rule, cost, nowUs) {
        cells[at] = nowUs
        cells[at + 1] += 1
        cells[at + 2] += cost
      },
      remaining: (cells, at, { limit }) => limit - cells[at + 2],
      freshAtUs: (cells, at, { perUs }) => cells[at] + perUs,
      merge(cells, at, other, otherAt) {
        for (let i = 0; i < 3; i += 1) cells[at + i] = Math.max(cells[at + i], other[otherAt + i])
      },
    })
    const { store } = make()
    const own = createLimiter(defineRule(three, { limit: 5, per: '1s' }), { store, name: 'own' })
    own.check('a', 2)
    expect(own.check('a', 2).remaining).toBe(1)
    const free = createLimiter(unlimited(), { store, name: 'free' })
    free.block('a', '1m')
    expect([free.allow('a'), free.allow('b')]).toEqual([false, true])
  })

  it.each([
    ['maxKeys', 0],
    ['maxKeys', 50_000_001],
    ['maxKeys', '5'],
    ['maxBytes', 1_000],
    ['maxbytes', 1_000_000],
    ['maxBytes', 2 ** 50],
  ])('refuses %s %o', (name, value) => {
    expect(() => sharedMemoryStore({ [name]: value })).toThrow(withCode('SLUICE_OPTION'))
  })

  it('reports the needed bytes when there is no room for a limiter', () => {
    const { store } = make({ maxKeys: 100_000, maxBytes: 1_000_000 })
    expect(() => createLimiter(rule, { store })).toThrow(/needs [\d,]{9} bytes.*1,000,000/)
    expect(() => createLimiter(rule, { store })).toThrow(withCode('SLUICE_STORE_FULL'))
  })

  it('can be made for 50,000,000 keys', () => {
    const { store } = make({ maxKeys: 50_000_000 })
    const limiter = createLimiter(rule, { store })
    expect(limiter.check('alice').remaining).toBe(9)
  })

  it('has room for 64 limiters', () => {
    const { store } = make({ maxKeys: 1, maxBytes: 100_000_000 })
    for (let i = 0; i < 64; i += 1) createLimiter(rule, { store, name: `limiter ${i}` })
    expect(() => createLimiter(rule, { store, name: 'one more' })).toThrow(/64 limiters/)
  })
})

describe('attachSharedMemory', () => {
  it('shares states, blocks and floors', () => {
    const { store, clock } = make({ maxKeys: 2 })
    const there = attachSharedMemory(store.handle, { clock })
    const [one, two] = [store, there].map((store) => createLimiter(rule, { store, share: true }))
    one.check('a', 4)
    expect(two.check('a', 4).remaining).toBe(2)
    two.block('b', '1m')
    expect(one.peek('b').source).toBe('blocked')
    for (let i = 0; i < 200; i += 1) one.charge(`key ${i}`, 10)
    expect(two.peek('a').remaining).toBeLessThanOrEqual(2)
    expect(two.stats()).toEqual(one.stats())
    two.clear()
    expect(one.peek('a').remaining).toBe(10)
  })

  it('carries used units over between threads with different limits', () => {
    const { store, clock } = make()
    const there = attachSharedMemory(store.handle, { clock })
    const one = createLimiter(rule, { store, share: true })
    one.check('a', 4)
    const two = createLimiter(tokenBucket({ limit: 20, per: '1m' }), { store: there, share: true })
    expect(two.check('a', 1).remaining).toBe(15)
    expect(one.peek('a').remaining).toBe(5)
    expect(one.size()).toBe(1)
  })

  it('refuses other rules under the same name', () => {
    const { store, clock } = make()
    createLimiter(rule, { store, share: true })
    const there = attachSharedMemory(store.handle, { clock })
    const window = fixedWindow({ limit: 1, per: '1s' })
    expect(() => createLimiter(window, { store: there, share: true })).toThrow(
      withCode('SLUICE_STORE_MISMATCH'),
    )
  })

  it('refuses limits that need a larger row, except in a limiter with tiers', () => {
    const { store } = make()
    createLimiter(rule, { store }).close()
    const fraction = tokenBucket({ limit: 7, per: '1s' })
    expect(() => createLimiter(fraction, { store })).toThrow(withCode('SLUICE_STORE_MISMATCH'))
    const policy = createPolicy({ tiers: { free: rule }, defaultTier: 'free' })
    const limiter = createLimiter(policy, { store, name: 'tiers' })
    policy.setOverride('a', fraction)
    expect(limiter.check('a').remaining).toBe(6)
    policy.setOverride('b', gcra({ limit: 1, per: '1s' }))
    expect(() => limiter.check('b')).toThrow(withCode('SLUICE_STORE_MISMATCH'))
  })

  it('supports 4,000 different overrides, and throws for more', () => {
    const { store } = make({ maxKeys: 300_000 })
    const tiers = { free: rule, pro: tokenBucket({ limit: 100, per: '1m' }) }
    const policy = createPolicy({ tiers, defaultTier: 'free' })
    const limiter = createLimiter(policy, { store })
    const override = (i: number) => {
      limiter.check(`key ${i}`, 3)
      policy.setOverride(`key ${i}`, tokenBucket({ limit: 1_000 + i, per: '1h' }))
      return limiter.check(`key ${i}`).remaining
    }
    const wrong = Array.from({ length: 4_000 }, (_, i) => i).filter((i) => override(i) !== 996 + i)
    expect(wrong).toEqual([])
    expect(() => {
      for (let i = 4_000; i < 5_000; i += 1) override(i)
    }).toThrow(withCode('SLUICE_STORE_FULL'))
  })

  it.each([
    [undefined],
    ['handle'],
    [{}],
    [{ buffer: new SharedArrayBuffer(100_000) }],
    [{ buffer: new ArrayBuffer(100_000) }],
    [JSON.parse(JSON.stringify(make().store.handle))],
  ])('refuses %o', (handle) => {
    expect(() => attachSharedMemory(handle as never)).toThrow(withCode('SLUICE_OPTION'))
  })

  it('refuses a clock other than the store’s', () => {
    const clocked = make().store.handle
    expect(() => attachSharedMemory(clocked)).toThrow(withCode('SLUICE_CLOCK'))
    const { handle } = sharedMemoryStore({ maxKeys: 10 })
    expect(attachSharedMemory(handle).handle).toBe(handle)
    const elsewhere = { ...handle, timeOrigin: performance.timeOrigin + 1 }
    expect(() => attachSharedMemory(elsewhere)).toThrow(withCode('SLUICE_CLOCK'))
    const clock = manualClock()
    expect(() => attachSharedMemory(handle, { clock })).toThrow(withCode('SLUICE_CLOCK'))
  })
})
