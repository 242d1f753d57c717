import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import {
  compactStore,
  createLimiter,
  createPolicy,
  fixedWindow,
  gcra,
  slidingWindowLog,
  tokenBucket,
} from '../../index.ts'
import { manualClock, storeSuite } from '../../testing/index.ts'

const make = (options = {}) => {
  const clock = manualClock()
  return { clock, store: compactStore({ ...options, clock }) }
}
const steps = Number(process.env.SLUICE_STEPS ?? 10_000)
const withCode = (code: string) => expect.objectContaining({ code })

describe('compactStore keeps the contract of stores:', () => {
  const without = ['sliding-window-log']
  for (const { name, run } of storeSuite(make, { steps, without })) it(name, run, 60_000 + steps)
})

describe('compactStore', () => {
  it('never holds more than maxKeys, in any number of shards, and counts evictions', () => {
    for (const maxKeys of [1, 2, 100, 5_000, 20_000]) {
      const { store } = make({ maxKeys })
      const limiter = createLimiter(fixedWindow({ limit: 10_000_000, per: '1h' }), { store })
      for (let i = 0; i < 3 * maxKeys; i += 1) limiter.allow(`key ${i}`)
      expect(limiter.stats()).toMatchObject({ rows: maxKeys, maxKeys, evictions: 2 * maxKeys })
      expect(limiter.size()).toBe(maxKeys)
    }
  })

  // In a small table the rows behind an evicted one may wrap around to the new key's home slot.
  it('finds every new key again, however full and small the table is', () => {
    let lost = 0
    for (let round = 0; round < 2_000; round += 1) {
      const { store } = make({ maxKeys: 1 + (round % 24) })
      const limiter = createLimiter(tokenBucket({ limit: 1_000, per: '1d' }), { store })
      for (let i = 0; i < 60; i += 1) {
        const cost = 1 + ((i * 37) % 1_000)
        limiter.charge(`key ${i}`, cost)
        if (limiter.peek(`key ${i}`).remaining > 1_000 - cost) lost += 1
      }
    }
    expect(lost).toBe(0)
  })

  it('keeps 300,000 keys apart while it grows and removes rows', () => {
    const { store } = make()
    const limiter = createLimiter(gcra({ limit: 100, per: '1h' }), { store })
    const count = 300_000
    for (let i = 0; i < count; i += 1) limiter.charge(`key ${i}`, (i % 50) + 1)
    for (let i = 0; i < count; i += 3) limiter.reset(`key ${i}`)
    let wrong = 0
    for (let i = 0; i < count; i += 1) {
      const used = i % 3 === 0 ? 0 : (i % 50) + 1
      if (limiter.peek(`key ${i}`).remaining !== 100 - used) wrong += 1
    }
    expect(wrong).toBe(0)
    expect(limiter.size()).toBe(200_000)
  })

  it('reuses the slots of fresh rows instead of growing', () => {
    const { store, clock } = make()
    const limiter = createLimiter(fixedWindow({ limit: 5, per: '1s' }), { store })
    for (let round = 0; round < 10; round += 1) {
      for (let i = 0; i < 100_000; i += 1) limiter.allow(`${round} ${i}`)
      clock.advance(1_000)
    }
    expect(limiter.stats().rows).toBeLessThan(400_000)
    expect(limiter.stats().evictions).toBe(0)
  })

  it('supports more combinations of rules than fit into a four-bit tag', () => {
    const { store } = make()
    const policy = createPolicy({
      tiers: { all: tokenBucket({ limit: 100, per: '1h' }) },
      defaultTier: 'all',
    })
    const limiter = createLimiter(policy, { store })
    for (let i = 0; i < 1_000; i += 1) limiter.check(`key ${i}`, 7)
    for (let i = 0; i < 200; i += 1) {
      policy.setOverride(`key ${i}`, tokenBucket({ limit: 200 + i, per: '1h' }))
    }
    // An override that needs a second cell and brings another rule.
    policy.setOverride('key 0', [
      tokenBucket({ limit: 7_001, per: '1h' }),
      gcra({ limit: 9, per: '1m' }),
    ])
    const remaining = (i: number) => limiter.peek(`key ${i}`).rules.map((rule) => rule.remaining)
    expect(remaining(0)).toEqual([6_994, 9])
    const wrong = Array.from({ length: 1_000 }, (_, i) => i)
      .slice(1)
      .filter((i) => remaining(i)[0] !== (i < 200 ? 193 + i : 93))
    expect(wrong).toEqual([])
  })

  it('refuses to list keys, since it keeps none', () => {
    const { store } = make()
    const limiter = createLimiter(gcra({ limit: 1, per: '1s' }), { store })
    limiter.check('a')
    limiter.block('b', '1h')
    expect(() => [...limiter.entries()]).toThrow(withCode('SLUICE_NOT_LISTABLE'))
    expect(limiter.size()).toBe(2)
  })

  it('refuses a list in a tier or an override as well', () => {
    const log = slidingWindowLog({ limit: 1, per: '1s' })
    const tiers = { free: gcra({ limit: 1, per: '1s' }), pro: log }
    const unsupported = withCode('SLUICE_RULE_UNSUPPORTED')
    expect(() => createLimiter(createPolicy({ tiers }), make())).toThrow(withCode('SLUICE_OPTION'))
    expect(() => createLimiter(createPolicy({ tiers }), { store: make().store })).toThrow(
      unsupported,
    )
    const policy = createPolicy({ tiers: { free: tiers.free }, defaultTier: 'free' })
    const limiter = createLimiter(policy, { store: make().store })
    policy.setOverride('a', log)
    expect(() => limiter.check('a')).toThrow(unsupported)
    expect(limiter.check('b').allowed).toBe(true)
  })

  it('takes at most 36 bytes per key at a million keys of any length', async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc')
    // Buffers are freed in the background: measure until the result is stable.
    const bytes = async () => {
      let last = Number.POSITIVE_INFINITY
      for (;;) {
        collect()
        await new Promise((resolve) => setTimeout(resolve, 20))
        const { arrayBuffers } = process.memoryUsage()
        if (arrayBuffers >= last) return arrayBuffers
        last = arrayBuffers
      }
    }
    const before = await bytes()
    const { store } = make()
    const limiter = createLimiter(tokenBucket({ limit: 100, per: '1h' }), { store })
    const long = 'x'.repeat(200)
    for (let i = 0; i < 1_000_000; i += 1) limiter.allow(long + i)
    expect(limiter.stats()).toMatchObject({ rows: 1_000_000, evictions: 0 })
    expect(((await bytes()) - before) / 1_000_000).toBeLessThan(36)
  })

  it.each([0, -1, 1.5, Number.NaN, '5', 1_000_000_001])('refuses maxKeys %o', (maxKeys) => {
    expect(() => compactStore({ maxKeys: maxKeys as never })).toThrow(withCode('SLUICE_OPTION'))
  })

  it('refuses an unknown option', () => {
    expect(() => compactStore({ maxkeys: 5 } as never)).toThrow(withCode('SLUICE_OPTION'))
  })
})
