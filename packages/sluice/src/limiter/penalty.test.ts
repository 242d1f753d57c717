import { describe, expect, it } from 'vitest'
import {
  compactStore,
  createLimiter,
  fixedWindow,
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

describe.each(Object.entries(stores))('a penalty on %s', (_name, make) => {
  const penalty = { after: 3, within: '10s', block: ['1m', '10m'] } as const

  function made() {
    const clock = manualClock()
    const limiter = createLimiter(fixedWindow({ limit: 1, per: '5s' }), {
      store: make(clock),
      penalty,
    })
    const refuse = (times: number) => {
      limiter.check('a')
      for (let i = 0; i < times; i += 1) limiter.check('a')
    }
    return { clock, limiter, refuse }
  }

  it('blocks a key after `after` refusals within `within`, longer each time', () => {
    const { clock, limiter, refuse } = made()
    refuse(2)
    expect(limiter.peek('a')).toMatchObject({ allowed: false, source: 'store' })
    expect(limiter.check('a')).toMatchObject({ source: 'blocked', retryAfterMs: 60_000 })
    clock.advance(59_999.999)
    expect(limiter.allow('a')).toBe(false)
    clock.advance(0.001)
    expect(limiter.allow('a')).toBe(true)
    refuse(3)
    expect(limiter.peek('a')).toMatchObject({ source: 'blocked', retryAfterMs: 600_000 })
    clock.advance(600_000)
    refuse(3)
    expect(limiter.peek('a')).toMatchObject({ source: 'blocked', retryAfterMs: 600_000 })
  })

  it('forgets refusals after `within`, and blocks after ten times their duration', () => {
    const { clock, limiter, refuse } = made()
    refuse(2)
    clock.advance(10_000)
    refuse(2)
    expect(limiter.peek('a').source).toBe('store')
    limiter.check('a')
    expect(limiter.peek('a')).toMatchObject({ source: 'blocked', retryAfterMs: 60_000 })
    clock.advance(660_000)
    expect(limiter.size()).toBe(0)
    refuse(3)
    expect(limiter.peek('a')).toMatchObject({ source: 'blocked', retryAfterMs: 60_000 })
  })

  it('counts allow as check does, but no peek, no wait and no block', async () => {
    const { clock, limiter } = made()
    limiter.check('a')
    for (let i = 0; i < 9; i += 1) limiter.peek('a')
    await expect(limiter.wait('a', 1, { maxWaitMs: 0 })).rejects.toThrow()
    expect(limiter.allow('a')).toBe(false)
    expect(limiter.tryAcquire('a').allowed).toBe(false)
    expect(limiter.peek('a').source).toBe('store')
    expect(limiter.checkMany([{ key: 'a' }])[0].source).toBe('blocked')
    for (let i = 0; i < 9; i += 1) limiter.check('a')
    clock.advance(60_000)
    expect(limiter.peek('a').allowed).toBe(true)
  })

  it('counts the refusals of its field only', () => {
    const clock = manualClock()
    const rules = [
      tokenBucket({ limit: 2, per: '1m', by: 'user' }),
      fixedWindow({ limit: 3, per: '1s', by: 'global' }),
    ] as const
    const limiter = createLimiter(rules, {
      store: make(clock),
      penalty: { by: 'user', after: 2, within: '1m', block: '1h' },
    })
    limiter.check({ user: 'a' })
    limiter.check({ user: 'b' })
    limiter.check({ user: 'b' })
    for (let i = 0; i < 5; i += 1) {
      expect(limiter.check({ user: 'a' })).toMatchObject({ allowed: false, source: 'store' })
    }
    limiter.check({ user: 'b' })
    expect(limiter.check({ user: 'b' })).toMatchObject({ source: 'blocked' })
    limiter.unblock({ user: 'b' })
    expect(limiter.peek({ user: 'b' }).source).toBe('store')
  })

  it('refuses a counted call even if units refill fast', () => {
    const clock = manualClock()
    const nowUs = () => {
      clock.advance(0.001)
      return clock.nowUs()
    }
    const limiter = createLimiter(tokenBucket({ limit: 1, per: '1ms' }), {
      store: make({ ...clock, nowUs }),
      penalty,
    })
    limiter.check('a')
    clock.advance(0.998)
    expect(limiter.check('a')).toMatchObject({ allowed: false, retryAfterMs: 0.001 })
    expect(limiter.check('a').allowed).toBe(true)
    expect(limiter.check('a').allowed).toBe(false)
  })

  it('is not one of a decision’s rules', () => {
    const { limiter } = made()
    expect(limiter.check('a').rules.map(({ rule }) => rule)).toEqual(['fixed-window'])
  })
})

describe('the options of a penalty', () => {
  const rule = tokenBucket({ limit: 1, per: '1s' })
  const wrong = (penalty: unknown) => () => createLimiter(rule, { penalty } as never)

  it.each([
    ['an unknown option', { after: 1, within: '1m', block: '1m', until: 1 }, /no option "until"/],
    ['no refusals', { after: 0, within: '1m', block: '1m' }, /limit must be a whole number/],
    ['no time', { after: 1, within: '0s', block: '1m' }, /must be a duration from 1 ms/],
    ['no block', { after: 1, within: '1m', block: [] }, /1 to 8 durations/],
    ['a block that is no duration', { after: 1, within: '1m', block: ['soon'] }, /penalty: block/],
    [
      'a field of a key without any',
      { by: 'user', after: 1, within: '1m', block: '1m' },
      /by is for/,
    ],
  ])('are refused with %s', (_what, penalty, message) => {
    expect(wrong(penalty)).toThrow(message)
  })

  it('name a field that rules count', () => {
    const byUser = tokenBucket({ limit: 1, per: '1s', by: 'user' })
    expect(() =>
      createLimiter(byUser, { penalty: { after: 1, within: '1m', block: '1m' } }),
    ).toThrow(/by must be a field of the key/)
  })
})
