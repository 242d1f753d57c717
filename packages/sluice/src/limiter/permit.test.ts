import { describe, expect, it } from 'vitest'
import {
  compactStore,
  concurrency,
  createLimiter,
  memoryStore,
  type Store,
  tokenBucket,
} from '../index.ts'
import { sharedMemoryStore } from '../stores/shared-memory/shared-memory.ts'
import { type ManualClock, manualClock } from '../testing/index.ts'

const stores: Record<string, (clock: ManualClock) => Store> = {
  memoryStore: (clock) => memoryStore({ clock }),
  compactStore: (clock) => compactStore({ clock }),
  sharedMemoryStore: (clock) => sharedMemoryStore({ clock, maxKeys: 1_000 }),
}

const turns = async () => {
  for (let i = 0; i < 10; i += 1) await new Promise((resolve) => setImmediate(resolve))
}

describe.each(Object.entries(stores))('permits on %s', (_name, make) => {
  function made(limit = 2) {
    const clock = manualClock()
    const rules = [
      concurrency({ limit, hold: '8s' }),
      tokenBucket({ limit: 10, per: '10s', name: 'rate' }),
    ] as const
    const limiter = createLimiter(rules, { store: make(clock) })
    const take = (key = 'a', cost = 1) => {
      const permit = limiter.tryAcquire(key, cost)
      if (!permit.allowed) throw new Error('refused')
      return permit
    }
    const left = (key = 'a') => limiter.peek(key).rules.map(({ remaining }) => remaining)
    return { clock, limiter, take, left }
  }

  it('hold units until they are released, once', () => {
    const { limiter, take, left } = made()
    const [one, two] = [take(), take()]
    expect(limiter.tryAcquire('a')).toMatchObject({
      allowed: false,
      decision: { rule: 'concurrency', remaining: 0, capacity: 2 },
    })
    one.release()
    one.release()
    one.cancel()
    expect(left()).toEqual([1, 8])
    two.cancel()
    expect(left()).toEqual([2, 9])
    expect(limiter.stats().held).toBe(0)
  })

  it('settle the actual cost', () => {
    const { take, left } = made(5)
    const one = take('a', 4)
    one.settle(1)
    expect(left()).toEqual([5, 9])
    take('a', 1).settle(3)
    expect(left()).toEqual([5, 6])
    expect(() => take('a', 1).settle(-1)).toThrow(expect.objectContaining({ code: 'SLUICE_COST' }))
    expect(left()).toEqual([4, 5])
  })

  it('expire by themselves, and free no other units afterwards', () => {
    const { clock, take, left } = made()
    const dead = take()
    take()
    clock.advance(10_000)
    expect(left()[0]).toBe(2)
    take()
    dead.release()
    expect(left()[0]).toBe(1)
  })

  it.each(['reset', 'clear'] as const)('free no other units after %s', (verb) => {
    const { limiter, take, left } = made()
    const before = take()
    limiter[verb]('a')
    take()
    take()
    before.release()
    expect(left()[0]).toBe(0)
  })

  it('are extended, unless they have ended', () => {
    const { clock, take, left } = made()
    const permit = take()
    clock.advance(6_000)
    expect(permit.extend()).toBe(true)
    clock.advance(6_000)
    expect(left()[0]).toBe(1)
    expect(permit.extend()).toBe(true)
    permit.release()
    expect(left()[0]).toBe(2)
    expect(permit.extend()).toBe(false)
    const late = take()
    clock.advance(10_000)
    expect(late.extend()).toBe(false)
  })

  it('wait in line, and go to the next one at a release', async () => {
    const { clock, limiter, take } = made(1)
    const first = take()
    const order: number[] = []
    const waits = [1, 2].map((i) =>
      limiter.acquire('a').then((permit) => {
        order.push(i)
        return permit
      }),
    )
    await turns()
    expect(order).toEqual([])
    first.release()
    await turns()
    clock.advance(70)
    await turns()
    expect(order).toEqual([1])
    ;(await waits[0]).release()
    await turns()
    clock.advance(70)
    await turns()
    expect(order).toEqual([1, 2])
    expect(limiter.stats().held).toBe(1)
  })

  it('are released when the work of run has ended in any way', async () => {
    const { limiter, left } = made(1)
    expect(await limiter.run('a', () => left()[0])).toBe(0)
    await expect(
      limiter.run('a', () => {
        throw new Error('failed')
      }),
    ).rejects.toThrow('failed')
    expect(left()[0]).toBe(1)
  })
})

describe('a limiter with a concurrency rule', () => {
  it('holds nothing when onDecision throws', async () => {
    const throwing = createLimiter(concurrency({ limit: 1, hold: '1m' }), {
      onDecision() {
        throw new Error('told')
      },
    })
    expect(() => throwing.tryAcquire('a')).toThrow('told')
    await expect(throwing.acquire('a')).rejects.toThrow('told')
    expect([throwing.stats().held, throwing.peek('a').remaining]).toEqual([0, 1])
  })

  const limiter = createLimiter(concurrency({ limit: 1, hold: '1m' }))

  it('refuses verbs that give no permit', async () => {
    const needs = expect.objectContaining({ code: 'SLUICE_NEEDS_ACQUIRE' })
    expect(() => limiter.allow('a')).toThrow(needs)
    expect(() => limiter.check('a')).toThrow(needs)
    expect(() => limiter.checkMany([{ key: 'a' }])).toThrow(needs)
    await expect(limiter.wait('a')).rejects.toThrow(needs)
    limiter.charge('a', 1)
    limiter.refund('a', 1)
    expect(limiter.peek('a')).toMatchObject({ allowed: true, remaining: 1 })
  })

  it('rejects an acquire whose turn does not come in time, and takes no permit for it', async () => {
    const clock = manualClock()
    const tight = createLimiter(concurrency({ limit: 1, hold: '1m' }), { clock })
    tight.tryAcquire('a')
    const late = tight.acquire('a', 1, { maxWaitMs: 1_000 })
    const rejected = expect(late).rejects.toThrow(
      expect.objectContaining({ code: 'SLUICE_WAIT_TOO_LONG' }),
    )
    await turns()
    clock.advance(1_000)
    await turns()
    await rejected
    expect(tight.stats().held).toBe(1)
  })
})
