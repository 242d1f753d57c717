import { expect, it } from 'vitest'
import {
  concurrency,
  createLimiter,
  createPolicy,
  type Duration,
  fixedWindow,
  gcra,
  tokenBucket,
  unlimited,
} from '../../index.ts'
import { manualClock } from '../../testing/index.ts'
import { remoteStore } from './remote.ts'

/** Creates a store with rows in a map, and counts reads. */
function made() {
  const clock = manualClock()
  const rows = new Map<string, string>()
  const reads: number[] = []
  const store = remoteStore(
    {
      async read(names) {
        reads.push(names.length)
        return { texts: names.map((name) => rows.get(name) ?? null), nowUs: clock.nowUs() }
      },
      async swap(changes) {
        if (changes.some(({ name, from }) => (rows.get(name) ?? null) !== from)) return false
        for (const { name, to } of changes) rows.set(name, to!)
        return true
      },
    },
    { clock },
  )
  return { store, rows, reads }
}

it('decides in order and in one trip when keys share a row', async () => {
  const { store, reads } = made()
  const limiter = createLimiter(
    [
      tokenBucket({ limit: 9, per: '1h', by: 'user' }),
      fixedWindow({ limit: 4, per: '1h', by: 'org' }),
    ],
    { store, timeoutMs: 5_000 },
  )
  const keys = [
    { user: 'alice', org: 'acme' },
    { user: 'bob', org: 'acme' },
    { user: 'alice', org: 'acme' },
    { user: null, org: 'acme' },
    { user: 'alice', org: 'acme' },
  ]
  const decisions = await limiter.checkMany(keys.map((key) => ({ key })))
  const left = decisions.map(({ allowed, rules }) => [allowed, rules.at(-1)!.remaining])
  expect(left).toEqual([
    [true, 3],
    [true, 2],
    [true, 1],
    [true, 0],
    [false, 0],
  ])
  expect(reads).toEqual([3])
})

it('does not rewrite a row of other limits when a call charges it nothing', async () => {
  const { store, rows } = made()
  const held = (hold: Duration) => concurrency({ limit: 9, hold, by: 'user', name: 'held' })
  const policy = createPolicy({
    tierBy: 'user',
    defaultTier: 'slow',
    tiers: { slow: held('1h'), quick: held('1s') },
    rules: fixedWindow({ limit: 9, per: '1m', by: 'org', name: 'calls' }),
  })
  const limiter = createLimiter(policy, { store, timeoutMs: 5_000 })
  const key = { user: 'alice', org: 'acme' }
  await limiter.tryAcquire(key)
  const [before] = rows.values()
  await limiter.charge(key, { held: 1, calls: 1 } as never, { tier: 'quick' })
  expect(rows.values().next().value).toBe(before)
  expect((await limiter.peek(key)).rules.map(({ remaining }) => remaining)).toEqual([8, 7])
})

it('decides in order also right after a call about one of the keys', async () => {
  const { store } = made()
  const rule = fixedWindow({ limit: 9, per: '1h', by: 'org' })
  const limiter = createLimiter([gcra({ limit: 9, per: '1h', by: 'user' }), rule], {
    ...{ store, timeoutMs: 5_000 },
  })
  const users = ['alice', 'bob', 'alice', 'bob']
  await limiter.check({ user: 'alice', org: 'acme' })
  const decisions = await limiter.checkMany(users.map((user) => ({ key: { user, org: 'acme' } })))
  expect(decisions.map(({ rules }) => rules[1].remaining)).toEqual([7, 6, 5, 4])
})

it('leaves a row alone that it cannot decode and has no state in', async () => {
  const { store, rows } = made()
  const limiter = createLimiter(
    [unlimited({ by: 'user' }), concurrency({ limit: 9, hold: '1m', by: 'org', name: 'held' })],
    { store, timeoutMs: 5_000 },
  )
  const later = 'of a later version'
  rows.set('sl:default:user/alice', later)
  const key = { user: 'alice', org: 'acme' }
  const permit = await limiter.tryAcquire(key, 2)
  expect(permit.decision.rules[1].remaining).toBe(7)
  if (permit.allowed) await permit.cancel()
  await limiter.charge(key, 1)
  expect(rows.get('sl:default:user/alice')).toBe(later)
  await limiter.block({ user: 'alice' }, '1m')
  expect((await limiter.peek(key)).source).toBe('blocked')
})

it('decides locally for a field that is null while the engine is down', async () => {
  const down = () => Promise.reject(new Error('the engine is down'))
  const limiter = createLimiter(
    [
      tokenBucket({ limit: 9, per: '1h', by: 'user' }),
      fixedWindow({ limit: 4, per: '1h', by: 'org' }),
    ],
    { store: remoteStore({ read: down, swap: down }) },
  )
  const { source, rules } = await limiter.check({ user: null, org: 'acme' })
  expect([source, rules.map(({ remaining }) => remaining)]).toEqual(['local', [3]])
  expect((await limiter.check({ user: 'alice', org: null })).remaining).toBe(8)
})
