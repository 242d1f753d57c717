import { afterEach, describe, expect, it, vi } from 'vitest'
import { concurrency } from '../algorithms/concurrency.ts'
import { createLimiter, type Decision, leakyBucket, type Rule, tokenBucket } from '../index.ts'
import { manualClock } from '../testing/index.ts'
import { seededRandom } from '../testing/random.ts'
import type { Checked, Waiter } from './line.ts'
import { createWaitQueue } from './wait-queue.ts'

interface Ticket extends Checked {
  readonly number: number
}

const turn = () => new Promise((resolve) => setImmediate(resolve))
const onePerSecond = tokenBucket({ limit: 1, per: '1s' })

afterEach(() => {
  vi.restoreAllMocks()
})

/** A line on the decisions of a limiter, which come at once or a turn later. */
function made(rule: Rule, isLater: boolean) {
  const clock = manualClock()
  const limiter = createLimiter(rule, { clock })
  const queue = createWaitQueue(clock, clock.nowUs)
  let tickets = 0
  const said = <T>(value: T): T | Promise<T> => (isLater ? turn().then(() => value) : value)
  const passed: string[] = []
  const takes: number[] = []
  const startUs = clock.nowUs()

  return {
    clock,
    limiter,
    queue,
    /** Who was admitted, in this order. */
    passed,
    /** When a check was made, in milliseconds from the start. */
    takes,
    async advance(ms: number) {
      clock.advance(ms)
      for (let i = 0; i < 5; i += 1) await turn()
    },
    join(name: string, options: Partial<Waiter<Ticket>> & { key?: string } = {}) {
      const { key = 'a', ...own } = options
      const waiter: Waiter<Ticket> = {
        cost: 1,
        priority: 0,
        maxWaitUs: 1e9,
        maxWaiting: 1_000,
        signal: undefined,
        set: () => ({
          ...{ rules: [rule], capacity: rule.capacity, delays: rule.algorithm.delays },
          ...{ holds: false, penalty: undefined, generation: 0, held: new Float64Array(2) },
        }),
        peek: () => said(limiter.peek(key, own.cost)),
        take() {
          takes.push((clock.nowUs() - startUs) / 1_000)
          tickets += 1
          const { decision } = limiter.tryAcquire(key, own.cost)
          return said({ decision, number: tickets })
        },
        ...own,
      }
      return queue.join(key, waiter).then((checked) => {
        if (checked.decision.allowed) passed.push(name)
        return checked
      })
    },
  }
}

describe.each([
  ['synchronous', false],
  ['asynchronous', true],
])('a %s line', (_, isLater) => {
  it('returns the result of the check', async () => {
    const { join, advance } = made(onePerSecond, isLater)
    const first = join('first')
    await advance(0)
    expect(await first).toMatchObject({ number: 1, decision: { allowed: true } })
    const second = join('second')
    await advance(0)
    await advance(1_000)
    expect(await second).toMatchObject({ number: 3, decision: { allowed: true } })
  })

  it('lets the higher priority go first, and in order within one', async () => {
    const { join, advance, passed } = made(onePerSecond, isLater)
    const all = [['zero'], ['one'], ['late', -5], ['high', 7], ['two'], ['higher', 8], ['seven', 7]]
    for (const [name, priority = 0] of all as [string, number?][]) void join(name, { priority })
    for (let i = 0; i < 8; i += 1) await advance(1_000)
    expect(passed).toEqual(['zero', 'higher', 'high', 'seven', 'one', 'two', 'late'])
  })

  it('lets a small call of higher priority pass at once, before a large one', async () => {
    const { join, advance, passed, limiter } = made(tokenBucket({ limit: 4, per: '4s' }), isLater)
    limiter.check('a', 2)
    void join('large', { cost: 4 })
    await advance(0)
    void join('small', { cost: 2, priority: 1 })
    await advance(0)
    expect(passed).toEqual(['small'])
  })

  it('lets no more than 16 later calls go before one', async () => {
    const { join, advance, passed, limiter } = made(onePerSecond, isLater)
    limiter.check('a')
    void join('patient')
    for (let i = 1; i <= 40; i += 1) {
      void join(`high ${i}`, { priority: 1_000 })
      await advance(1_000)
    }
    expect(passed.indexOf('patient')).toBe(16)
    expect(passed.slice(0, 3)).toEqual(['high 1', 'high 2', 'high 3'])
  })

  it('lets them go before it when they come all at once, too', async () => {
    const { join, advance, passed, limiter } = made(onePerSecond, isLater)
    limiter.check('a')
    void join('patient')
    for (let i = 1; i <= 20; i += 1) void join(`high ${i}`, { priority: i })
    for (let i = 0; i < 22; i += 1) await advance(1_000)
    expect(passed.indexOf('patient')).toBe(16)
    expect(passed).toHaveLength(21)
    expect(passed.slice(0, 2)).toEqual(['high 16', 'high 15'])
    expect(passed.slice(17)).toEqual(['high 20', 'high 19', 'high 18', 'high 17'])
  })

  it('predicts waits from the calls that are really ahead', async () => {
    const { join, limiter } = made(onePerSecond, isLater)
    limiter.check('a')
    for (let i = 0; i < 5; i += 1) void join('zero')
    const last = await join('late', { maxWaitUs: 1 })
    const first = await join('first', { maxWaitUs: 1, priority: 1 })
    expect([last.decision.retryAfterMs, first.decision.retryAfterMs]).toEqual([6_000, 1_000])
  })

  it('wakes the lines that share a part, and only those', async () => {
    const { join, advance, takes, limiter, queue } = made(onePerSecond, isLater)
    for (const key of ['a', 'b', 'c']) limiter.check(key)
    void join('a', { key: 'a', parts: ['user 1', 'org 1'] })
    void join('b', { key: 'b', parts: ['user 2', 'org 1'] })
    void join('c', { key: 'c' })
    await advance(0)
    const wakes: [string, number][] = [
      ['user 1', 1],
      ['org 1', 2],
      ['a', 0],
      ['c', 1],
      ['org 2', 0],
    ]
    for (const [part, woken] of wakes) {
      takes.length = 0
      queue.wake(part)
      await advance(0)
      expect([part, takes.length]).toEqual([part, woken])
    }
    takes.length = 0
    queue.wakeAll()
    await advance(0)
    expect(takes).toHaveLength(3)
    await advance(1_000)
    takes.length = 0
    queue.wake('org 1')
    await advance(0)
    expect(takes).toEqual([])
  })

  it('wakes the head within its poll interval', async () => {
    const { join, advance, takes, limiter, passed } = made(onePerSecond, isLater)
    vi.spyOn(Math, 'random').mockReturnValue(0)
    limiter.charge('a', 60)
    const asked: Decision[] = []
    const pollUs = (refused: Decision) => {
      asked.push(refused)
      return 400_000
    }
    void join('first', { pollUs })
    await advance(0)
    for (let i = 0; i < 12; i += 1) await advance(100)
    expect(takes).toEqual([0, 400, 800, 1_200])
    expect(asked.every(({ allowed, retryAfterMs }) => !allowed && retryAfterMs > 58_000)).toBe(true)
    vi.spyOn(Math, 'random').mockReturnValue(0.999_999)
    takes.length = 0
    await advance(400)
    for (let i = 0; i < 12; i += 1) await advance(100)
    expect(takes).toEqual([1_600, 2_100, 2_600])
    expect(passed).toEqual([])
  })

  it('predicts no wait for held units, but gives up in time', async () => {
    const { join, advance, limiter } = made(concurrency({ limit: 1, hold: '1m' }), isLater)
    limiter.tryAcquire('a')
    const waits = ['first', 'second'].map((name) => join(name, { maxWaitUs: 2_000_000 }))
    const ended = vi.fn()
    for (const wait of waits) void wait.then(ended)
    await advance(1_999)
    expect(ended).not.toHaveBeenCalled()
    await advance(1)
    const answers = await Promise.all(waits)
    expect(answers.map(({ decision }) => decision.allowed)).toEqual([false, false])
    expect(answers[0].decision.retryAfterMs).toBeGreaterThan(57_000)
  })

  it('rejects with the error of a check or peek, and continues with the next call', async () => {
    const { join, advance, passed, limiter } = made(onePerSecond, isLater)
    limiter.check('a')
    const failing = () => {
      throw new Error('no directory')
    }
    const head = expect(join('head', { take: failing })).rejects.toThrow('no directory')
    const next = join('next')
    const other = expect(join('other', { peek: failing })).rejects.toThrow('no directory')
    await advance(0)
    await Promise.all([head, other])
    await advance(1_000)
    await next
    expect(passed).toEqual(['next'])
  })

  it('answers every call under random events, and keeps no state', async () => {
    for (let seed = 1; seed <= 10; seed += 1) {
      const { join, advance, queue, limiter } = made(tokenBucket({ limit: 5, per: '1s' }), isLater)
      const random = seededRandom(seed)
      const answers: Promise<unknown>[] = []
      const signals = [new AbortController(), new AbortController()]
      for (let step = 0; step < 60; step += 1) {
        const key = random.pick(['a', 'b'])
        for (let calls = random.below(4); calls > 0; calls -= 1) {
          const waiter = {
            key,
            cost: 1 + random.below(3),
            priority: random.below(3),
            maxWaitUs: random.below(3_000_000),
            maxWaiting: random.below(12),
            signal: random.pick([undefined, ...signals])?.signal,
          }
          answers.push(join(`${step}`, waiter).catch(() => undefined))
        }
        if (random.below(10) === 0) {
          const [gone] = signals.splice(random.below(2), 1, new AbortController())
          gone.abort(new Error('gone'))
        }
        if (random.below(5) === 0) limiter.reset(key)
        if (random.below(5) === 0) queue.wake(key)
        await advance(random.below(400))
      }
      for (let i = 0; i < 4; i += 1) await advance(1_000)
      await Promise.all(answers)
      expect([queue.waiting('a'), queue.waiting('b')]).toEqual([0, 0])
    }
  })

  it('undoes the admission of a call that gives up while it waits for its slot', async () => {
    const { join, advance, limiter } = made(leakyBucket({ limit: 1, per: '1s' }), isLater)
    limiter.check('a')
    const abort = new AbortController()
    const dropped = vi.fn()
    const held = expect(join('a', { signal: abort.signal, dropped })).rejects.toThrow('gone')
    await advance(500)
    abort.abort(new Error('gone'))
    await held
    await advance(1_000)
    expect(dropped).toHaveBeenCalledTimes(1)
    expect(dropped.mock.calls[0][0]).toMatchObject({ number: 1, decision: { allowed: true } })
  })
})

describe('a line with asynchronous checks', () => {
  it('undoes the admission of a call that has given up meanwhile', async () => {
    const { join, advance, limiter, passed } = made(onePerSecond, true)
    const abort = new AbortController()
    const dropped = vi.fn(() => limiter.refund('a', 1))
    const gone = expect(join('gone', { signal: abort.signal, dropped })).rejects.toThrow('gone')
    abort.abort(new Error('gone'))
    void join('next')
    await gone
    await advance(0)
    expect(dropped).toHaveBeenCalledTimes(1)
    expect(passed).toEqual(['next'])
  })

  it('does not miss a wake that comes during a check', async () => {
    const { join, advance, limiter, passed, queue } = made(onePerSecond, true)
    limiter.check('a')
    void join('first')
    limiter.reset('a')
    queue.wake('a')
    await advance(0)
    expect(passed).toEqual(['first'])
  })

  it('keeps the order of calls with pending peeks', async () => {
    const { join, advance, passed, limiter } = made(onePerSecond, true)
    limiter.check('a')
    void join('first')
    void join('second')
    const slow = new Promise<void>((resolve) => setTimeout(resolve, 20))
    const peek = () => slow.then(() => limiter.peek('a'))
    void join('third', { peek })
    void join('fourth')
    await advance(0)
    for (let i = 0; i < 4; i += 1) await advance(1_000)
    await slow
    for (let i = 0; i < 2; i += 1) await advance(1_000)
    expect(passed).toEqual(['first', 'second', 'third', 'fourth'])
  })

  it('rejects every call in line when it is closed, also during a check', async () => {
    const { join, advance, queue } = made(onePerSecond, true)
    const waits = ['first', 'second', 'third'].map((name) => join(name))
    const settled = Promise.allSettled(waits)
    queue.close(new Error('closed'))
    await advance(0)
    expect((await settled).map(({ status }) => status)).toEqual(Array(3).fill('rejected'))
    expect(queue.waiting('a')).toBe(0)
  })
})
