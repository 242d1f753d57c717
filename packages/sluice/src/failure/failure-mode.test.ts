import { afterEach, describe, expect, it, vi } from 'vitest'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import { systemClock } from '../core/clock.ts'
import { failureOf } from '../core/decision.ts'
import { SluiceError } from '../core/errors.ts'
import { createAsyncLimiter } from '../limiter/async-limiter.ts'
import { createLimiter } from '../limiter/limiter.ts'
import type { FailureOptions } from '../limiter/verbs.ts'
import type { AsyncStore, AsyncTable, Request } from '../stores/store.ts'

/** Creates a store that answers, fails or stays silent, on command. */
function createShaky() {
  let mood: 'well' | 'failing' | 'silent' = 'well'
  let failure = () => new Error('connection refused')
  const asked: Request[] = []
  const act = async () => {
    if (mood === 'silent') await new Promise(() => {})
    if (mood === 'failing') throw failure()
  }
  const table: AsyncTable = {
    use: (rules) => ({
      rules,
      capacity: Math.min(...rules.map((rule) => rule.capacity)),
      delays: false,
      holds: false,
      penalty: undefined,
      generation: 0,
      held: new Float64Array(),
    }),
    ask(requests) {
      for (const request of requests) {
        asked.push(request)
        const { set, verb } = request
        const isDecision = verb === 'check' || verb === 'peek'
        act().then(
          () => request.done(isDecision ? createLimiter(set.rules).peek('alice') : undefined),
          (error) => request.failed(error),
        )
      }
    },
    clear: act,
    stats: () => ({ contended: 0 }),
    async *keys() {
      await act()
      yield ['alice']
    },
  }
  const store: AsyncStore = {
    kind: 'async',
    clock: systemClock,
    createLimiter: createAsyncLimiter,
    open: () => table,
  }
  return {
    asked,
    store,
    be(next: typeof mood) {
      mood = next
    },
    failBy(error: Error) {
      failure = () => error
    },
  }
}

const rule = tokenBucket({ limit: 4, per: '1h' })
const shaky = (options: FailureOptions = {}) => {
  const made = createShaky()
  const limiter = createLimiter(rule, { store: made.store, timeoutMs: 20, ...options })
  return { ...made, limiter }
}

afterEach(() => void vi.useRealTimers())

describe('while its store fails, a limiter', () => {
  it('decides locally by its share of the same rules', async () => {
    const { limiter, be } = shaky({ fleetSize: 2 })
    be('failing')
    const all = []
    for (let i = 0; i < 3; i += 1) all.push(await limiter.check('alice'))
    expect(all.map(({ allowed, source }) => [allowed, source])).toEqual([
      [true, 'local'],
      [true, 'local'],
      [false, 'local'],
    ])
    expect(all[0]).toMatchObject({ capacity: 2, remaining: 1 })
    // The share of one of two nodes refills at half the rate.
    const gapMs = 1_800_000
    for (const { resetAfterMs, remaining, rules } of all) {
      expect(rules[0].nextAfterMs).toBeCloseTo(resetAfterMs - gapMs * (1 - remaining), 2)
    }
    expect(await limiter.check('bob')).toMatchObject({ allowed: true, remaining: 1 })
  })

  it('refuses locally a cost that its share can never admit', async () => {
    const { limiter, be } = shaky({ fleetSize: 2 })
    be('failing')
    const refused = await limiter.check('alice', 3)
    expect(refused).toMatchObject({ allowed: false, source: 'local', retryAfterMs: 1_000 })
    expect((await limiter.check('alice', 2)).allowed).toBe(true)
  })

  it("admits everything with onStoreFailure 'open', and reports no remaining units", async () => {
    const { limiter, be } = shaky({ onStoreFailure: 'open' })
    be('failing')
    for (let i = 0; i < 10; i += 1) {
      expect(await limiter.check('alice')).toMatchObject({
        allowed: true,
        source: 'open',
        remaining: 0,
        retryAfterMs: 0,
      })
    }
  })

  it("refuses everything with onStoreFailure 'closed'", async () => {
    const { limiter, be } = shaky({ onStoreFailure: 'closed' })
    be('failing')
    expect(await limiter.check('alice')).toMatchObject({ allowed: false, source: 'closed' })
    const many = await limiter.checkMany([{ key: 'a' }, { key: 'b' }])
    expect(many.map(({ allowed, source }) => [allowed, source])).toEqual([
      [false, 'closed'],
      [false, 'closed'],
    ])
  })

  it("keeps the cause of each refusal with onStoreFailure 'closed'", async () => {
    const { limiter, be, failBy } = shaky({ onStoreFailure: 'closed' })
    const failures = async () => {
      const all = await limiter.checkMany([{ key: 'a' }, { key: 'b' }])
      return [await limiter.check('alice'), ...all].map(failureOf)
    }
    be('silent')
    const late = expect.objectContaining({ code: 'SLUICE_STORE_UNAVAILABLE' })
    expect(await failures()).toEqual([late, late, late])
    // After two more failures the breaker is open.
    be('failing')
    for (const reason of ['first', 'second', 'third']) {
      const error = new Error(reason)
      failBy(error)
      const last = reason === 'third' ? new Error('second') : error
      expect(await failures()).toEqual([last, last, last])
    }
  })

  it('waits for a silent store no longer than timeoutMs', async () => {
    const { limiter, be } = shaky({ timeoutMs: 30 })
    be('silent')
    const startMs = performance.now()
    const decisions = await Promise.all([limiter.check('alice'), limiter.peek('alice')])
    const tookMs = performance.now() - startMs
    expect(decisions.every(({ source }) => source === 'local')).toBe(true)
    expect(tookMs).toBeGreaterThanOrEqual(29)
    expect(tookMs).toBeLessThan(500)
  })

  it('charges and refunds locally, and rejects administrative calls', async () => {
    const { limiter, be } = shaky()
    be('failing')
    await limiter.charge('alice', 3)
    expect((await limiter.peek('alice')).remaining).toBe(1)
    await limiter.refund('alice', 2)
    expect((await limiter.peek('alice')).remaining).toBe(3)
    const calls = [
      limiter.block('alice', '1m'),
      limiter.unblock('alice'),
      limiter.reset('alice'),
      limiter.clear(),
      limiter.size(),
    ]
    for (const call of calls) {
      await expect(call).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })
    }
    be('silent')
    await expect(limiter.reset('alice')).rejects.toMatchObject({
      code: 'SLUICE_STORE_UNAVAILABLE',
    })
  })

  it('still refuses keys that it has blocked itself', async () => {
    const { limiter, be } = shaky()
    await limiter.block('alice', '1m')
    be('failing')
    expect(await limiter.check('alice')).toMatchObject({ allowed: false, source: 'blocked' })
  })

  it('does not restore blocks and units that were lifted or reset while the store was up', async () => {
    const { limiter, be } = shaky()
    const locally = async () => {
      be('failing')
      const { allowed, remaining, source } = await limiter.check('alice', 4)
      be('well')
      return [allowed, remaining, source]
    }
    await limiter.block('alice', '1m')
    await limiter.unblock('alice')
    expect(await locally()).toEqual([true, 0, 'local'])
    expect(await locally()).toEqual([false, 0, 'local'])
    await limiter.reset('alice')
    expect(await locally()).toEqual([true, 0, 'local'])
    await limiter.clear()
    expect(await locally()).toEqual([true, 0, 'local'])
  })

  it('sends only one probe every 100 ms after five failures', async () => {
    const [degraded, recovered] = [vi.fn(), vi.fn()]
    const { limiter, be, asked } = shaky({ onDegraded: degraded, onRecovered: recovered })
    vi.useFakeTimers({ toFake: ['performance'] })
    be('failing')
    for (let i = 0; i < 20; i += 1) await limiter.check('alice')
    expect(asked).toHaveLength(5)
    expect(degraded).toHaveBeenCalledOnce()
    expect(degraded.mock.calls[0][0]).toBeInstanceOf(SluiceError)
    expect(degraded.mock.calls[0][0].message).toContain('connection refused')
    vi.advanceTimersByTime(100)
    await Promise.all(Array.from({ length: 20 }, () => limiter.check('alice')))
    expect(asked).toHaveLength(6)
    be('well')
    expect((await limiter.check('alice')).source).toBe('local')
    expect(recovered).not.toHaveBeenCalled()
    vi.advanceTimersByTime(100)
    expect((await limiter.check('alice')).source).toBe('store')
    expect(recovered).toHaveBeenCalledOnce()
    expect((await limiter.check('alice')).source).toBe('store')
    expect(asked).toHaveLength(8)
  })

  it('passes the cause to onDegraded, and decides even if that throws', async () => {
    const told: unknown[] = []
    const uncaught = (error: unknown) => told.push(error)
    process.once('uncaughtException', uncaught)
    const onDegraded = vi.fn(() => {
      throw new Error('of onDegraded')
    })
    const { limiter, be } = shaky({ onDegraded })
    be('failing')
    for (let i = 0; i < 5; i += 1) expect((await limiter.check('alice', 0)).source).toBe('local')
    expect(onDegraded).toHaveBeenCalledWith(
      expect.objectContaining({
        code: 'SLUICE_STORE_UNAVAILABLE',
        cause: expect.objectContaining({ message: 'connection refused' }),
      }),
    )
    await vi.waitFor(() => expect(told).toMatchObject([{ message: 'of onDegraded' }]))
    process.off('uncaughtException', uncaught)
  })

  it('says why the store failed even if the error has no message', async () => {
    const { limiter, be, failBy } = shaky()
    be('failing')
    const addresses = ['::1', '127.0.0.1'].map((each) => new Error(`ECONNREFUSED ${each}`))
    for (const [error, reason] of [
      [new AggregateError(addresses), 'ECONNREFUSED ::1; ECONNREFUSED 127.0.0.1'],
      [Object.assign(new Error(''), { code: 'ECONNRESET' }), 'ECONNRESET'],
      [new TypeError(''), 'TypeError'],
    ] as const) {
      failBy(error)
      await expect(limiter.reset('alice')).rejects.toMatchObject({
        message: `the store failed: ${reason}`,
        cause: error,
      })
    }
  })

  it('does not recover through a charge of 0, which is never sent', async () => {
    const recovered = vi.fn()
    const { limiter, be } = shaky({ onRecovered: recovered })
    vi.useFakeTimers({ toFake: ['performance'] })
    be('failing')
    for (let i = 0; i < 5; i += 1) await limiter.check('alice')
    vi.advanceTimersByTime(200)
    await limiter.charge('alice', 0)
    expect(recovered).not.toHaveBeenCalled()
  })

  it("admits all waiting callers with onStoreFailure 'open'", async () => {
    const { limiter, be } = shaky({ onStoreFailure: 'open' })
    be('failing')
    const waits = Array.from({ length: 8 }, () => limiter.wait('alice', 1, { maxWaitMs: 100 }))
    const all = await Promise.all(waits)
    expect(all.every(({ allowed, source }) => allowed && source === 'open')).toBe(true)
  })

  it('keeps locally used units when the store fails again', async () => {
    const { limiter, be } = shaky()
    be('failing')
    for (let i = 0; i < 4; i += 1) await limiter.check('alice')
    be('well')
    expect((await limiter.check('alice')).source).toBe('store')
    be('failing')
    expect(await limiter.check('alice')).toMatchObject({ allowed: false, source: 'local' })
  })
})

describe('the failure options', () => {
  const { store } = createShaky()

  it('are validated', () => {
    const make = (options: object) => () => createLimiter(rule, { store, ...options })
    expect(make({ timeoutMs: 0 })).toThrow(/timeoutMs/)
    expect(make({ fleetSize: 1.5 })).toThrow(/fleetSize/)
    expect(make({ onStoreFailure: 'maybe' })).toThrow(/'local', 'open' or 'closed'/)
    expect(make({ onDegraded: 'x' })).toThrow(/onDegraded/)
    expect(make({ clock: systemClock })).toThrow(/clock belongs to its store/)
  })

  it('are refused for synchronous stores', () => {
    const options = { timeoutMs: 50 } as object
    expect(() => createLimiter(rule, options)).toThrow(/for a store that answers later/)
  })
})
