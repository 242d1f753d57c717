import { describe, expect, it } from 'vitest'
import {
  createLimiter,
  fixedWindow,
  leakyBucket,
  memoryStore,
  type Rule,
  tokenBucket,
} from './index.ts'
import { type ManualClock, manualClock } from './testing/index.ts'

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
    expect(await limiter.wait('a', 1, { maxWaitMs: 999.999 })).toMatchObject({
      allowed: false,
      retryAfterMs: 1_000,
    })
    void limiter.wait('a', 1, { maxWaitMs: 1_000 })
    void limiter.wait('a', 1, { maxWaitMs: 2_000 })
    expect(await limiter.wait('a', 1, { maxWaitMs: 2_500 })).toMatchObject({
      allowed: false,
      retryAfterMs: 3_000,
    })
  })

  it('is refused at once when the line is full', async () => {
    const { limiter } = made(onePerSecond)
    limiter.check('a')
    void limiter.wait('a', 1, { maxWaiting: 2 })
    void limiter.wait('a', 1, { maxWaiting: 2 })
    expect((await limiter.wait('a', 1, { maxWaiting: 2 })).allowed).toBe(false)
    expect((await limiter.wait('b', 1, { maxWaiting: 0 })).allowed).toBe(true)
    expect((await limiter.wait('b', 1, { maxWaiting: 0 })).allowed).toBe(false)
  })

  it('is refused when its time is over before its turn', async () => {
    const { limiter, clock } = made(onePerSecond)
    limiter.check('a')
    const first = limiter.wait('a', 1)
    const second = limiter.wait('a', 1, { maxWaitMs: 2_000 })
    await advance(clock, 500)
    // Somebody who does not wait takes the unit that the first was waiting for.
    limiter.charge('a', 1)
    await advance(clock, 500)
    await advance(clock, 1_000)
    expect((await first).allowed).toBe(true)
    expect((await second).allowed).toBe(false)
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

  it('takes no slot in a leaky bucket that is too far away', async () => {
    const { limiter } = made(leakyBucket({ limit: 1, per: '1s', queue: 5 }))
    limiter.check('a', 3)
    expect((await limiter.wait('a', 1, { maxWaitMs: 2_999 })).allowed).toBe(false)
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

  it.each([
    [{ maxWaitMs: -1 }, 'SLUICE_DURATION'],
    [{ maxWaitMs: Number.NaN }, 'SLUICE_DURATION'],
    [{ maxWaiting: -1 }, 'SLUICE_OPTION'],
    [{ maxwait: 1 }, 'SLUICE_OPTION'],
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
