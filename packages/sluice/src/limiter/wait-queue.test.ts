import { describe, expect, it, vi } from 'vitest'
import {
  createLimiter,
  createPolicy,
  type Decision,
  fixedWindow,
  leakyBucket,
  memoryStore,
  type Rule,
  type RuleFactory,
  SluiceError,
  slidingWindowLog,
  tokenBucket,
} from '../index.ts'
import { type ManualClock, manualClock } from '../testing/index.ts'

const onePerSecond = tokenBucket({ limit: 1, per: '1s' })
const made = (rule: Rule) => {
  const clock = manualClock()
  return { clock, limiter: createLimiter(rule, { store: memoryStore({ clock }) }) }
}
const turn = () => new Promise((resolve) => setImmediate(resolve))
const advance = async (clock: ManualClock, ms: number) => {
  clock.advance(ms)
  await turn()
}

/** The decision that a call of `wait` rejects with. */
const refusal = async (waiting: Promise<Decision>): Promise<Decision> => {
  const error = await waiting.then(
    () => undefined,
    (error) => error,
  )
  expect(error).toBeInstanceOf(SluiceError)
  expect(error).toMatchObject({ code: 'SLUICE_WAIT_TOO_LONG', decision: { allowed: false } })
  return error.decision
}

describe('wait', () => {
  it('passes at once when there is room', async () => {
    const { limiter } = made(onePerSecond)
    expect(await limiter.wait('a')).toMatchObject({ allowed: true, remaining: 0 })
  })

  it('serves first come first served, also a small cost behind a large one', async () => {
    const { limiter, clock } = made(tokenBucket({ limit: 4, per: '4s' }))
    limiter.check('a', 3)
    const order: string[] = []
    void limiter.wait('a', 4).then(() => order.push('large'))
    void limiter.wait('a', 1).then(() => order.push('small'))
    await advance(clock, 2_999.999)
    expect(order).toEqual([])
    await advance(clock, 0.001)
    expect(order).toEqual(['large'])
    await advance(clock, 1_000)
    expect(order).toEqual(['large', 'small'])
  })

  it('is refused at once when the known wait is too long, those in line included', async () => {
    const { limiter } = made(onePerSecond)
    limiter.check('a')
    const first = await refusal(limiter.wait('a', 1, { maxWaitMs: 999.999 }))
    expect(first.retryAfterMs).toBe(1_000)
    void limiter.wait('a', 1, { maxWaitMs: 1_000 })
    void limiter.wait('a', 1, { maxWaitMs: 2_000 })
    const third = await refusal(limiter.wait('a', 1, { maxWaitMs: 2_500 }))
    expect(third.retryAfterMs).toBe(3_000)
  })

  it('is refused at once when the line is full', async () => {
    const { limiter } = made(onePerSecond)
    limiter.check('a')
    void limiter.wait('a', 1, { maxWaiting: 2 })
    void limiter.wait('a', 1, { maxWaiting: 2 })
    expect((await refusal(limiter.wait('a', 1, { maxWaiting: 2 }))).retryAfterMs).toBe(3_000)
    expect((await limiter.wait('b', 1, { maxWaiting: 0 })).allowed).toBe(true)
    expect((await refusal(limiter.wait('b', 1, { maxWaiting: 0 }))).retryAfterMs).toBe(1_000)
  })

  it('is refused when its time is over before its turn', async () => {
    const { limiter, clock } = made(onePerSecond)
    limiter.check('a')
    const first = limiter.wait('a', 1)
    const second = refusal(limiter.wait('a', 1, { maxWaitMs: 2_000 }))
    await advance(clock, 500)
    // A call that does not wait takes the unit that the first was waiting for.
    limiter.charge('a', 1)
    await advance(clock, 500)
    await advance(clock, 1_000)
    expect((await first).allowed).toBe(true)
    expect((await second).retryAfterMs).toBe(1_000)
  })

  it('tells onDecision what each call ended with, a refusal included', async () => {
    const seen: [boolean, string, number][] = []
    const limiter = createLimiter(onePerSecond, {
      clock: manualClock(),
      onDecision: ({ allowed }, key, cost) => void seen.push([allowed, key, cost]),
    })
    await limiter.wait('a')
    await refusal(limiter.wait('a', 1, { maxWaitMs: 5 }))
    expect(seen).toEqual([
      [true, 'a', 1],
      [false, 'a', 1],
    ])
  })

  it('tells how many calls wait for a key, those held for their slot included', async () => {
    const { limiter, clock } = made(leakyBucket({ limit: 1, per: '1s', queue: 1 }))
    for (let i = 0; i < 4; i += 1) void limiter.wait('a')
    await advance(clock, 0)
    expect([limiter.waiting('a'), limiter.waiting('b')]).toEqual([3, 0])
    for (const left of [2, 1, 0]) {
      await advance(clock, 1_000)
      expect(limiter.waiting('a')).toBe(left)
    }
    limiter.close()
    expect(() => limiter.waiting('a')).toThrow(expect.objectContaining({ code: 'SLUICE_CLOSED' }))
  })

  it('gives up when aborted, spends nothing, and lets the next one forward', async () => {
    const { limiter, clock } = made(onePerSecond)
    limiter.check('a')
    const abort = new AbortController()
    const first = limiter.wait('a', 1, { signal: abort.signal })
    const second = limiter.wait('a')
    await advance(clock, 100)
    abort.abort(new Error('the client is gone'))
    await expect(first).rejects.toThrow('the client is gone')
    await advance(clock, 900)
    expect((await second).allowed).toBe(true)
    await expect(limiter.wait('b', 1, { signal: AbortSignal.abort() })).rejects.toThrow('abort')
    expect(limiter.peek('b').remaining).toBe(1)
  })

  it('waits for a window to end', async () => {
    const { limiter, clock } = made(fixedWindow({ limit: 2, per: '1m' }))
    limiter.check('a', 2)
    let passed = 0
    for (let i = 0; i < 2; i += 1)
      void limiter.wait('a', 1, { maxWaitMs: 60_000 }).then(() => {
        passed += 1
      })
    await advance(clock, 59_999.999)
    expect(passed).toBe(0)
    await advance(clock, 0.001)
    expect(passed).toBe(2)
  })

  it('holds an admitted call until its slot in a leaky bucket', async () => {
    const { limiter, clock } = made(leakyBucket({ limit: 2, per: '1s', queue: 2 }))
    const passed: number[] = []
    for (let i = 0; i < 4; i += 1) void limiter.wait('a').then(() => passed.push(i))
    await advance(clock, 0)
    expect(passed).toEqual([0])
    await advance(clock, 500)
    expect(passed).toEqual([0, 1])
    await advance(clock, 500)
    expect(passed).toEqual([0, 1, 2])
    await advance(clock, 500)
    expect(passed).toEqual([0, 1, 2, 3])
  })

  it('leaves no delay to a caller who has waited it out', async () => {
    const { limiter, clock } = made(leakyBucket({ limit: 1, per: '1s' }))
    limiter.check('a')
    const held = limiter.wait('a')
    await advance(clock, 1_000)
    const { allowed, delayMs, rules } = await held
    expect([allowed, delayMs, rules[0].delayMs]).toEqual([true, 0, 0])
  })

  it('tells a refusal from one look at the clock', async () => {
    const limiter = createLimiter(tokenBucket({ limit: 2, per: '1s', burst: 1 }))
    limiter.check('a')
    const { retryAfterMs, resetAfterMs, rules } = await refusal(
      limiter.wait('a', 1, { maxWaitMs: 5 }),
    )
    expect([retryAfterMs, rules[0].retryAfterMs]).toEqual([resetAfterMs, resetAfterMs])
  })

  it('takes no slot in a leaky bucket that is too far away', async () => {
    const { limiter } = made(leakyBucket({ limit: 1, per: '1s', queue: 5 }))
    limiter.check('a', 3)
    expect((await refusal(limiter.wait('a', 1, { maxWaitMs: 2_999 }))).retryAfterMs).toBe(3_000)
    expect(limiter.peek('a').remaining).toBe(3)
  })

  it('rejects a held call when the limiter is closed', async () => {
    const { limiter } = made(leakyBucket({ limit: 1, per: '1s' }))
    limiter.check('a')
    const held = limiter.wait('a')
    limiter.close()
    await expect(held).rejects.toThrow(expect.objectContaining({ code: 'SLUICE_CLOSED' }))
  })

  it('keeps keys apart', async () => {
    const { limiter } = made(onePerSecond)
    limiter.check('a')
    void limiter.wait('a')
    expect((await limiter.wait('b')).allowed).toBe(true)
  })

  it('is rejected when its cost no longer fits the rules of its tier', async () => {
    const clock = manualClock()
    for (const make of [fixedWindow, slidingWindowLog, tokenBucket] as RuleFactory[]) {
      const tiers = { pro: make({ limit: 100, per: '1s' }), free: make({ limit: 10, per: '1s' }) }
      const policy = createPolicy({ tiers, defaultTier: 'pro' })
      const limiter = createLimiter(policy, { clock })
      limiter.check('a', 100)
      const waiting = limiter.wait('a', 50)
      limiter.refund('a', 100)
      policy.setTier('a', 'free')
      clock.advance(2_000)
      await expect(waiting).rejects.toThrow(
        expect.objectContaining({ code: 'SLUICE_COST_EXCEEDS_CAPACITY' }),
      )
    }
  })

  it('rejects a call in line when the tier of the key cannot be told', async () => {
    const clock = manualClock()
    let fails = false
    const policy = createPolicy({
      tiers: { a: tokenBucket({ limit: 1, per: '10s' }) },
      tierOf() {
        if (fails) throw new Error('no directory')
        return 'a'
      },
    })
    const limiter = createLimiter(policy, { clock })
    limiter.check('k')
    const waits = [
      limiter.wait('k', 1, { tier: 'a', maxWaitMs: '1m' }),
      limiter.wait('k', 1, { maxWaitMs: 25_000 }),
    ]
    fails = true
    limiter.charge('k', 2, { tier: 'a' })
    const settled = Promise.allSettled(waits)
    for (let i = 0; i < 60; i += 1) await advance(clock, 1_000)
    expect((await settled).map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
  })

  it('rejects all calls when the clock cannot sleep', async () => {
    const clock = { ...manualClock(), sleep: () => Promise.reject(new Error('insomnia')) }
    const limiter = createLimiter(onePerSecond, { clock })
    limiter.check('a')
    await expect(limiter.wait('a')).rejects.toThrow('insomnia')
    const { sleep: _, ...noSleep } = manualClock()
    expect(() => createLimiter(onePerSecond, { clock: noSleep as never })).toThrow(
      expect.objectContaining({ code: 'SLUICE_CLOCK' }),
    )
  })

  it('knows how long the line is, units and slots included', async () => {
    const leaky = made(leakyBucket({ limit: 1, per: '1s', queue: 10 }))
    leaky.limiter.check('a', 11)
    const far = await refusal(leaky.limiter.wait('a', 1, { maxWaitMs: 5_000 }))
    expect(far.retryAfterMs).toBe(11_000)

    const bucket = made(tokenBucket({ limit: 1, per: '1s', burst: 10 }))
    bucket.limiter.check('a', 10)
    for (let i = 0; i < 9; i += 1) void bucket.limiter.wait('a')
    const behind = await refusal(bucket.limiter.wait('a', 10, { maxWaitMs: 15_000 }))
    expect(behind.retryAfterMs).toBe(19_000)

    const window = made(fixedWindow({ limit: 10, per: '10s' }))
    window.limiter.check('a', 10)
    for (let i = 0; i < 2; i += 1) void window.limiter.wait('a', 5)
    const later = await refusal(window.limiter.wait('a', 5, { maxWaitMs: 15_000 }))
    expect(later.retryAfterMs).toBe(20_000)
  })

  it('does not refuse at once what may pass in time', async () => {
    const clock = manualClock(1_767_225_600_600_000)
    const limiter = createLimiter(fixedWindow({ limit: 3, per: '1s', align: 'clock' }), { clock })
    limiter.block('a', 250)
    for (let i = 0; i < 3; i += 1) void limiter.wait('a')
    const fourth = limiter.wait('a', 3, { maxWaitMs: 566 })
    await advance(clock, 250)
    await advance(clock, 150)
    expect((await fourth).allowed).toBe(true)
  })

  it('looks again when a block is lifted or the key is reset', async () => {
    const { limiter, clock } = made(onePerSecond)
    limiter.block('a', '20s')
    const waiting = limiter.wait('a')
    await advance(clock, 0)
    limiter.unblock('a')
    expect((await waiting).allowed).toBe(true)
    const next = limiter.wait('a')
    await advance(clock, 0)
    limiter.reset('a')
    expect((await next).allowed).toBe(true)
    const last = limiter.wait('a')
    await advance(clock, 0)
    limiter.clear()
    expect((await last).allowed).toBe(true)
  })

  it('leaves nothing behind on a signal that is used again and again', async () => {
    const { limiter, clock } = made(leakyBucket({ limit: 1, per: 1, queue: 100 }))
    const { signal } = new AbortController()
    const [add, remove] = [
      vi.spyOn(signal, 'addEventListener'),
      vi.spyOn(signal, 'removeEventListener'),
    ]
    const waits = Array.from({ length: 50 }, () => limiter.wait('a', 1, { signal }))
    for (let i = 0; i < 60; i += 1) await advance(clock, 1)
    expect((await Promise.all(waits)).every(({ allowed }) => allowed)).toBe(true)
    expect(add.mock.calls.length).toBeGreaterThan(0)
    expect(add.mock.calls.length).toBeLessThan(10)
    expect(remove.mock.calls.length).toBe(add.mock.calls.length)
  })

  it('serves ten thousand callers in line', async () => {
    const { limiter, clock } = made(fixedWindow({ limit: 10_000, per: '1s' }))
    limiter.check('a', 10_000)
    const waits = Array.from({ length: 10_000 }, () => limiter.wait('a', 1, { maxWaiting: 10_000 }))
    await advance(clock, 1_000)
    const all = await Promise.all(waits)
    expect(all.filter(({ allowed }) => allowed).length).toBe(10_000)
  })

  it.each([
    [{ maxWaitMs: -1 }, 'SLUICE_DURATION'],
    [{ maxWaitMs: Number.NaN }, 'SLUICE_DURATION'],
    [{ maxWaiting: -1 }, 'SLUICE_OPTION'],
    [{ priority: 1.5 }, 'SLUICE_OPTION'],
    [{ priority: 1_001 }, 'SLUICE_OPTION'],
    [{ priority: -1_001 }, 'SLUICE_OPTION'],
    [{ maxwait: 1 }, 'SLUICE_OPTION'],
    [{ signal: 5 }, 'SLUICE_OPTION'],
    [{ signal: { throwIfAborted() {} } }, 'SLUICE_OPTION'],
    [5, 'SLUICE_OPTION'],
  ])('refuses the options %o', async (options, code) => {
    const { limiter } = made(onePerSecond)
    await expect(limiter.wait('a', 1, options as never)).rejects.toThrow(
      expect.objectContaining({ code }),
    )
  })

  it('runs on the system clock too', async () => {
    const limiter = createLimiter(tokenBucket({ limit: 100, per: '1s', burst: 1 }))
    const passed = await Promise.all(Array.from({ length: 5 }, () => limiter.wait('a')))
    expect(passed.map(({ allowed }) => allowed)).toEqual([true, true, true, true, true])
  })
})
