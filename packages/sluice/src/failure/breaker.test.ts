import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Breaker, createBreakers } from './breaker.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => void vi.useRealTimers())

const create = () => {
  const on = { open: vi.fn(), closed: vi.fn() }
  return { on, breakerOf: createBreakers(on) }
}

/** Fails several calls, each with another error. */
function fail(breaker: Breaker, times: number): void {
  for (let i = 0; i < times; i += 1) breaker.failed('call', new Error(`reason ${i}`))
}

describe('a breaker', () => {
  it('opens at the fifth failure in a row; a success resets the count', () => {
    const { on, breakerOf } = create()
    const breaker = breakerOf(0)
    fail(breaker, 4)
    breaker.succeeded('call')
    fail(breaker, 4)
    expect([breaker.enter(), on.open.mock.calls]).toEqual(['call', []])
    const last = new Error('the last')
    breaker.failed('call', last)
    expect([breaker.enter(), on.open.mock.calls]).toEqual([undefined, [[last]]])
  })

  it('counts calls of one trip that failed with the same error once', () => {
    const { breakerOf } = create()
    const breaker = breakerOf(0)
    const error = new Error('connection refused')
    for (let i = 0; i < 128; i += 1) breaker.failed('call', error)
    expect(breaker.enter()).toBe('call')
    fail(breaker, 4)
    expect(breaker.enter()).toBeUndefined()
  })

  it('sends one probe every 100 ms, also while probes fail with the same error', () => {
    const { on, breakerOf } = create()
    const breaker = breakerOf(0)
    fail(breaker, 5)
    const error = new Error('connection refused')
    for (let i = 0; i < 3; i += 1) {
      vi.advanceTimersByTime(99)
      expect(breaker.enter()).toBeUndefined()
      vi.advanceTimersByTime(1)
      expect([breaker.enter(), breaker.enter()]).toEqual(['probe', undefined])
      breaker.failed('probe', error)
    }
    expect([on.open.mock.calls.length, on.closed.mock.calls.length]).toEqual([1, 0])
  })

  it('is closed by a successful probe only, not by earlier calls', () => {
    const { on, breakerOf } = create()
    const breaker = breakerOf(0)
    fail(breaker, 5)
    breaker.succeeded('call')
    expect([breaker.enter(), on.closed.mock.calls.length]).toEqual([undefined, 0])
    vi.advanceTimersByTime(100)
    expect(breaker.enter()).toBe('probe')
    breaker.succeeded('probe')
    expect([breaker.enter(), on.closed.mock.calls.length]).toEqual(['call', 1])
  })
})

describe('the breakers of a store', () => {
  it('are independent, one per part', () => {
    const { breakerOf } = create()
    fail(breakerOf(1), 5)
    expect([breakerOf(1).enter(), breakerOf(2).enter()]).toEqual([undefined, 'call'])
  })

  it('report when the first one opens and when the last one has closed', () => {
    const { on, breakerOf } = create()
    fail(breakerOf(1), 5)
    fail(breakerOf(2), 5)
    expect(on.open).toHaveBeenCalledOnce()
    vi.advanceTimersByTime(100)
    for (const [part, closed] of [
      [1, 0],
      [2, 1],
    ]) {
      breakerOf(part).enter()
      breakerOf(part).succeeded('probe')
      expect(on.closed).toHaveBeenCalledTimes(closed)
    }
  })
})
