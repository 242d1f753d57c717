import { describe, expect, it } from 'vitest'
import { createLimiter, fixedWindow, gcra } from '../index.ts'
import { manualClock, storeSuite } from '../testing/index.ts'
import { sharedMemoryStore } from './shared-memory.ts'

const make = (options = {}) => {
  const clock = manualClock()
  return { clock, store: sharedMemoryStore({ maxKeys: 10_000, ...options, clock }) }
}
const steps = Number(process.env.SLUICE_STEPS ?? 10_000)

describe('sharedMemoryStore keeps the contract of stores:', () => {
  const without = ['sliding-window-log']
  for (const { name, run } of storeSuite(make, { steps, without })) it(name, run, 60_000 + steps)
})

describe('sharedMemoryStore', () => {
  it('never holds more than maxKeys, and counts what had to go', () => {
    for (const maxKeys of [1, 2, 100, 5_000, 20_000]) {
      const { store } = make({ maxKeys })
      const limiter = createLimiter(fixedWindow({ limit: 10_000_000, per: '1h' }), { store })
      for (let i = 0; i < 3 * maxKeys; i += 1) limiter.allow(`key ${i}`)
      expect(limiter.stats()).toMatchObject({ rows: maxKeys, maxKeys, evictions: 2 * maxKeys })
      expect(limiter.size()).toBe(maxKeys)
    }
  })

  it('keeps 300,000 keys apart, through removing', () => {
    const { store } = make({ maxKeys: 300_000 })
    const limiter = createLimiter(gcra({ limit: 100, per: '1h' }), { store })
    const count = 300_000
    for (let i = 0; i < count; i += 1) limiter.charge(`key ${i}`, (i % 50) + 1)
    console.log(limiter.stats())
    for (let i = 0; i < count; i += 3) limiter.reset(`key ${i}`)
    let wrong = 0
    for (let i = 0; i < count; i += 1) {
      const used = i % 3 === 0 ? 0 : (i % 50) + 1
      if (limiter.peek(`key ${i}`).remaining !== 100 - used) wrong += 1
    }
    expect(wrong).toBe(0)
    expect(limiter.size()).toBe(200_000)
  })
})
