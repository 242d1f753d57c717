import { describe, expect, it } from 'vitest'
import { leftOf } from './left-of.ts'

const figures = { algorithm: 'token-bucket', limit: 3, perMs: 30_000, capacity: 3 }
const rule = { name: 'r', text: '3/30s', ...figures }

describe('what is left between two readings', () => {
  it('refills by whole units where the rule does, and never falls below what was read', () => {
    const read = { remaining: 0, capacity: 3 }
    expect(leftOf(rule, { ...read, freshInMs: 30_000 })).toBe(0)
    expect(leftOf(rule, { ...read, freshInMs: 20_001 })).toBe(0)
    expect(leftOf(rule, { ...read, freshInMs: 20_000 })).toBe(1)
    expect(leftOf(rule, { ...read, remaining: 2, freshInMs: 10_000.001 })).toBe(2)
    expect(leftOf(rule, { ...read, freshInMs: 90_000 })).toBe(0)
    expect(leftOf(rule, { ...read, freshInMs: 0 })).toBe(3)
  })

  it('stays the same until a window is over', () => {
    const read = { remaining: 1, capacity: 3 }
    const window = { ...rule, algorithm: 'fixed-window' }
    expect(leftOf(window, { ...read, freshInMs: 1 })).toBe(1)
    expect(leftOf(window, { ...read, freshInMs: 0 })).toBe(3)
    expect(leftOf(undefined, { ...read, freshInMs: 1 })).toBe(1)
  })
})
