import { expect, it } from 'vitest'
import { concurrency, createLimiter, createPolicy, fixedWindow } from '../../index.ts'
import { manualClock } from '../../testing/index.ts'
import { remoteStore } from './remote.ts'

it('leaves a row of other limits as it is where a call charges it nothing', async () => {
  const clock = manualClock()
  const rows = new Map<string, string>()
  const store = remoteStore(
    {
      read: async (names) => ({
        texts: names.map((name) => rows.get(name) ?? null),
        nowUs: clock.nowUs(),
      }),
      async swap(changes) {
        if (changes.some(({ name, from }) => (rows.get(name) ?? null) !== from)) return false
        for (const { name, to } of changes) rows.set(name, to!)
        return true
      },
    },
    { clock },
  )
  const held = (hold: string) => concurrency({ limit: 9, hold, by: 'user', name: 'held' })
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
