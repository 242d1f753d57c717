import { describe, expect, it, vi } from 'vitest'
import { concurrency } from '../algorithms/concurrency.ts'
import { leakyBucket } from '../algorithms/leaky-bucket.ts'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import type { Rule } from '../core/rule.ts'
import { createLimiter } from '../limiter/limiter.ts'
import { manualClock } from '../testing/manual-clock.ts'
import type { Ending } from './ending.ts'
import { createGuard } from './guard.ts'
import type { RequestOptions } from './http-options.ts'

const incoming = { method: 'GET', peer: '192.0.2.1', header: () => undefined }
const requests = tokenBucket({ limit: 10, per: '1h', name: 'requests' })
const tokens = tokenBucket({ limit: 1_000, per: '1h', name: 'tokens' })
const held = concurrency({ limit: 2, hold: '1m', name: 'held' })
const all = { requests: 1, tokens: 100, held: 1 }

/** A guard for alice, what is left to her, and how many permits are open. */
function guarded(options: RequestOptions<object, object> = {}) {
  const limiter = createLimiter([requests, tokens, held], { clock: manualClock() })
  const onError = vi.fn()
  const guard = createGuard<object, object>({
    limiter,
    key: () => 'alice',
    cost: all,
    onError,
    ...options,
  })
  const left = () =>
    limiter.peek('alice', { requests: 0, tokens: 0, held: 0 }).rules.map((each) => each.remaining)
  const enter = async () => guard.enter({}, incoming)
  return { limiter, guard, left, enter, onError, held: () => limiter.stats().held }
}

describe('a request', () => {
  it('holds its units until its response ends, whole or not, and only once', async () => {
    const { guard, left, enter, held } = guarded()
    const [first, second, third] = [await enter(), await enter(), await enter()]
    expect([first, second, third].map(({ refusal }) => refusal?.status)).toEqual([
      undefined,
      undefined,
      429,
    ])
    expect([left(), held()]).toEqual([[8, 800, 0], 2])
    guard.finish(first, {}, {}, true)
    guard.finish(first, {}, {}, false)
    guard.finish(third, {}, {}, true)
    expect([left(), held()]).toEqual([[8, 800, 1], 1])
    guard.finish(second, {}, {}, false)
    expect([left(), held()]).toEqual([[8, 800, 2], 0])
  })

  it('has a permit only if a rule or option needs one', async () => {
    const only = async (
      options: Omit<RequestOptions<object, object>, 'tier'>,
      rules: Rule[] = [requests],
    ) => {
      const guard = createGuard<object, object>({ rules, ...options })
      return (await guard.enter({}, incoming)).limit
    }
    expect(await only({})).toMatchObject({ decision: { remaining: 9 }, permit: undefined })
    expect((await only({ permit: true }))?.permit).toMatchObject({ allowed: true })
    expect((await only({ finalCost: () => 0 }))?.permit).toMatchObject({ allowed: true })
    expect((await only({}, [held]))?.permit).toMatchObject({ allowed: true })
    expect(await only({ skip: () => true })).toBeUndefined()
  })

  it('may end its permit itself, and later ends do nothing', async () => {
    const { guard, left, enter } = guarded({ finalCost: () => ({ tokens: 999 }) })
    const entrance = await enter()
    entrance.limit?.permit?.settle({ requests: 1, tokens: 30, held: 1 })
    guard.finish(entrance, {}, {}, true)
    expect(left()).toEqual([9, 970, 2])
  })

  it('holds nothing if the guard fails', async () => {
    const onDecision = () => {
      throw new Error('of onDecision')
    }
    const { enter, held } = guarded({ onDecision })
    await expect(enter()).rejects.toThrow('of onDecision')
    expect(held()).toBe(0)
    const partition = guarded({ partitionKey: () => 7 as never })
    await expect(partition.enter()).rejects.toThrow('partitionKey')
    expect(partition.held()).toBe(0)
  })

  it('in shadow mode holds a permit if admitted, and passes without one if refused', async () => {
    const { guard, enter, held } = guarded({ shadow: true })
    const entrances = [await enter(), await enter(), await enter()]
    expect(entrances.map(({ refusal }) => refusal)).toEqual([undefined, undefined, undefined])
    expect(entrances.map(({ limit }) => limit?.permit !== undefined)).toEqual([true, true, false])
    expect(entrances[2].limit?.decision.allowed).toBe(false)
    for (const entrance of entrances) guard.finish(entrance, {}, {}, true)
    expect(held()).toBe(0)
  })

  it('gets the delay of its slot, except in shadow mode', async () => {
    const rules = leakyBucket({ limit: 1, per: '1s', queue: 5 })
    for (const [shadow, least] of [
      [false, 900],
      [true, 0],
    ] as const) {
      const guard = createGuard<object, object>({ rules, shadow, key: () => 'alice' })
      await guard.enter({}, incoming)
      const { delayMs } = await guard.enter({}, incoming)
      expect([delayMs >= least, delayMs > 0]).toEqual([true, !shadow])
    }
  })
})

describe('finalCost', () => {
  it.each<[string, unknown, number[]]>([
    ['an object with some names', { tokens: 30 }, [9, 970, 2]],
    ['an object with all names', { requests: 0, tokens: 130, held: 1 }, [10, 870, 2]],
    ['a number', 0, [10, 1_000, 2]],
    ['nothing', undefined, [9, 900, 2]],
    ['more than there is', { tokens: 20_000_000 }, [9, 0, 2]],
  ])('may return %s', async (_what, final, after) => {
    const { guard, left, enter, onError } = guarded({ finalCost: () => final as number })
    guard.finish(await enter(), {}, {}, true)
    expect([left(), onError.mock.calls]).toEqual([after, []])
  })

  it.each<[string, unknown]>([
    ['a misspelt name', { tokns: 1 }],
    ['a part that is no number', { tokens: '30' }],
    ['a negative part', { tokens: -1 }],
    ['no names', {}],
    ['null', null],
    ['a text', '30'],
  ])('is reported for %s, keeps the estimate, and releases', async (_what, final) => {
    const finalCost = async () => final as number
    const { guard, left, enter, held, onError } = guarded({ finalCost })
    guard.finish(await enter(), {}, {}, true)
    await vi.waitFor(() => expect(onError).toHaveBeenCalledOnce())
    expect([left(), held()]).toEqual([[9, 900, 2], 0])
  })

  it('releases if it throws or rejects', async () => {
    const now = () => {
      throw new Error('of finalCost')
    }
    for (const finalCost of [now, async () => now()]) {
      const { guard, enter, held, onError } = guarded({ finalCost })
      guard.finish(await enter(), {}, {}, true)
      await vi.waitFor(() => expect(onError).toHaveBeenCalledOnce())
      expect(held()).toBe(0)
    }
  })

  it('refunds nothing after an abort, unless it has read the flag', async () => {
    const spent = async (
      finalCost: RequestOptions<object, object>['finalCost'],
      isWhole = false,
    ) => {
      const { guard, left, enter } = guarded({ finalCost })
      guard.finish(await enter(), {}, {}, isWhole)
      await vi.waitFor(() => expect(left()[2]).toBe(2))
      return left().slice(0, 2)
    }
    expect(await spent(() => 0)).toEqual([9, 900])
    expect(await spent(() => ({ requests: 0, tokens: 300 }))).toEqual([9, 700])
    const used = (_request: object, _response: object, { aborted }: Ending) =>
      aborted ? { tokens: 40 } : { tokens: 50 }
    expect(await spent(used)).toEqual([9, 960])
    expect(await spent(used, true)).toEqual([9, 950])
    const later = async (_request: object, _response: object, ending: Ending) => {
      await undefined
      return ending.aborted ? { tokens: 40 } : undefined
    }
    expect(await spent(later)).toEqual([9, 960])
    expect(await spent(later, true)).toEqual([9, 900])
  })
})

describe('cost', () => {
  it('may be functions by the name of a rule', async () => {
    const tokensOf = vi.fn(async () => 250)
    const { left, enter } = guarded({ cost: { requests: 1, tokens: tokensOf, held: () => 2 } })
    await enter()
    expect(left()).toEqual([9, 750, 0])
    expect(tokensOf).toHaveBeenCalledWith({})
    const object = guarded({ cost: () => ({ requests: 2, tokens: 3, held: 0 }) })
    await object.enter()
    expect(object.left()).toEqual([8, 997, 2])
  })

  it('that can never pass is refused by the rules that can never admit it', async () => {
    for (const tokens of [1_001, 10_000_001, 1e300]) {
      const { enter, held } = guarded({ cost: { requests: 1, tokens: () => tokens, held: 1 } })
      const { refusal } = await enter()
      const { detail, 'violated-policies': violated } = JSON.parse(refusal?.body ?? '')
      expect([refusal?.status, violated, held()]).toEqual([429, ['tokens'], 0])
      expect(detail).toBe(
        `This request can never pass: it costs ${tokens} of "tokens", which admits at most 1000. ` +
          'Waiting does not help.',
      )
    }
  })

  it.each<[object, RegExp]>([
    [{ requests: 1, tokens: 1 }, /rule "held" is missing/],
    [{ requests: 1, tokns: 1e300, held: 1 }, /no rule is called "tokns"/],
    [{ requests: 1, tokens: -1, held: 1 }, /cost must be a whole number/],
  ])('%o is an error', async (cost, message) => {
    const { enter } = guarded({ cost: () => cost as never })
    await expect(enter()).rejects.toThrow(message)
  })

  it.each<[unknown, RegExp]>([
    [{ tokens: -1 }, /cost of "tokens" must be a whole number/],
    [{ tokens: '1' }, /cost of "tokens" must be a whole number/],
    [[1], /cost must be a whole number/],
    [null, /cost must be a whole number/],
  ])('%j is refused when the guard is made', (cost, message) => {
    expect(() => guarded({ cost: cost as never })).toThrow(message)
  })
})
