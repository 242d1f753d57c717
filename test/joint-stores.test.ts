import {
  type AsyncLimiter,
  type AsyncPermit,
  type AsyncStore,
  compactStore,
  concurrency,
  createLimiter,
  createPolicy,
  fixedWindow,
  type KeyFields,
  type Limiter,
  memoryStore,
  type NoPermit,
  type Permit,
  type Store,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
  unlimited,
} from 'sluice'
import { redisStore } from 'sluice/redis'
import { type RemoteRows, remoteStore } from 'sluice/remote'
import { sharedMemoryStore } from 'sluice/shared-memory'
import { type ManualClock, manualClock, redisStandIn } from 'sluice/testing'
import { describe, expect, it } from 'vitest'
import { seededRandom } from '../packages/sluice/src/testing/random.ts'
import { useRedis } from './redis/fixture.ts'
import { timedStore } from './redis/timed.ts'

const redis = useRedis()

type Made = { readonly store: Store | AsyncStore; readonly clock: ManualClock }

/** Creates rows in a map, with versions. */
function mapRows(clock: ManualClock, atomic: 'all' | 'row'): RemoteRows {
  const rows = new Map<string, { text: string; version: number }>()
  let versions = 0
  return {
    atomic,
    read: async (names) => ({
      texts: names.map((name) => rows.get(name)?.text ?? null),
      versions: names.map((name) => rows.get(name)?.version ?? 0),
      nowUs: clock.nowUs(),
    }),
    async swap(changes) {
      if (atomic === 'row' && changes.length > 1) throw new Error('one row at a time')
      if (changes.some(({ name, version }) => (rows.get(name)?.version ?? 0) !== version)) {
        return false
      }
      for (const { name, to } of changes) {
        versions += 1
        if (to === null) rows.delete(name)
        else rows.set(name, { text: to, version: versions })
      }
      return true
    },
    async *list(start) {
      yield [...rows.keys()].filter((name) => name.startsWith(start))
    },
  }
}

const makers: Record<string, () => Made> = {
  compactStore: () => on((clock) => compactStore({ clock })),
  sharedMemoryStore: () =>
    on((clock) => sharedMemoryStore({ clock, maxKeys: 1_000, maxBytes: 2 ** 26 })),
  remoteStore: () => on((clock) => remoteStore(mapRows(clock, 'all'), { clock })),
  'remoteStore, row by row': () => on((clock) => remoteStore(mapRows(clock, 'row'), { clock })),
  redisStore: () => timedStore(redis.client),
  'redisStore on redisStandIn': () =>
    on((clock) => {
      const standIn = redisStandIn(clock.nowUs)
      const call = async (command: string, args: string[]) => {
        const reply = standIn.call(command, args)
        if (reply instanceof Error) throw reply
        return reply
      }
      return redisStore({ call })
    }),
}

const START_US = Date.UTC(2100, 0) * 1_000

function on(make: (clock: ManualClock) => Store | AsyncStore): Made {
  const clock = manualClock(START_US)
  return { clock, store: make(clock) }
}

const holdLists = (name: string) => name.startsWith('remoteStore') || name === 'redisStore'

function policyFor(withLists: boolean) {
  const log = withLists ? slidingWindowLog : slidingWindowCounter
  return createPolicy({
    tierBy: 'user',
    defaultTier: 'free',
    tiers: {
      free: [
        tokenBucket({ limit: 7, per: '10s', by: 'user', name: 'requests' }),
        concurrency({ limit: 3, hold: '4s', by: 'user' }),
      ],
      pro: [
        tokenBucket({ limit: 20, per: '10s', by: 'user', name: 'requests' }),
        concurrency({ limit: 5, hold: '4s', by: 'user' }),
      ],
      internal: unlimited({ by: 'user' }),
    },
    rules: [
      log({ limit: 30, per: '6s', by: 'org', name: 'tokens' }),
      concurrency({ limit: 4, hold: '8s', by: 'org', name: 'streams' }),
      fixedWindow({ limit: 25, per: '5s', by: 'global', name: 'everyone' }),
    ],
  })
}

type AnyLimiter = Limiter<KeyFields> | AsyncLimiter<KeyFields>
type AnyPermit = Permit | AsyncPermit | NoPermit

function limiterOn({ store }: Made, policy: ReturnType<typeof policyFor>): AnyLimiter {
  const penalty = { by: 'user', after: 4, within: '3s', block: [500, '2s'] }
  const options =
    store.kind === 'async' ? { store, penalty, timeoutMs: 60_000 } : { store, penalty }
  return createLimiter(policy as never, options as never) as AnyLimiter
}

describe.each(Object.entries(makers))('several fields, costs and permits on %s', (name, make) => {
  it.each([1, 2, 3])('behave as in memory (seed %i)', async (seed) => {
    const random = seededRandom(seed)
    const withLists = holdLists(name)
    const theirs = make()
    const ours: Made = { clock: manualClock(START_US), store: memoryStore({ clock: theirs.clock }) }
    const policies = [policyFor(withLists), policyFor(withLists)]
    const limiters = [limiterOn(ours, policies[0]), limiterOn(theirs, policies[1])]
    const permits: AnyPermit[][] = [[], []]
    let admitted = 0
    let refused = 0
    for (let step = 0; step < 600; step += 1) {
      const key = {
        user: random.below(12) === 0 ? null : random.pick(['a', 'b', '__proto__']),
        org: random.below(12) === 0 ? null : random.pick(['x', 'y']),
      }
      if (key.user === null && key.org === null) key.org = 'x'
      const byRule = {
        requests: 1,
        concurrency: 1,
        tokens: random.below(9),
        streams: 1,
        everyone: 1,
      }
      const cost = random.below(2) === 0 ? random.below(3) : byRule
      const verb = random.below(100)
      const amount = random.below(5)
      const tier = random.pick(['free', 'free', 'pro', 'internal'] as const)
      const which = random.below(1_000)
      const answers: unknown[] = []
      for (const [i, limiter] of limiters.entries()) {
        if (verb < 45) {
          const permit = await limiter.tryAcquire(key, cost)
          if (permit.allowed) permits[i].push(permit)
          answers.push(permit.decision)
          if (permit.allowed) admitted += 1
          else refused += 1
        } else if (verb < 60) {
          answers.push(await limiter.peek(key, cost))
        } else if (verb < 80 && permits[i].length > 0) {
          const at = which % permits[i].length
          const permit = permits[i][at]
          if (!permit.allowed) throw new Error('no permit')
          if (verb < 63) answers.push(await permit.extend())
          else if (verb < 70) await permit.release()
          else if (verb < 75) await permit.cancel()
          else await permit.settle(amount)
          if (verb >= 63 && which % 3 > 0) permits[i].splice(at, 1)
        } else if (verb < 84) {
          await limiter.charge(key, amount)
        } else if (verb < 88) {
          await limiter.refund(key, amount)
        } else if (verb === 88) {
          await limiter.block(key.org === null ? { user: 'a' } : { org: key.org }, 500)
        } else if (verb === 89) {
          await limiter.reset(key.user === null ? { org: 'x' } : { user: key.user })
        } else if (verb === 90) {
          policies[i].setTier('a', tier)
        }
      }
      const label = `step ${step}, verb ${verb}: ${JSON.stringify({ key, cost })}`
      expect(answers[1], label).toEqual(answers[0])
      if (verb > 92) theirs.clock.advance(random.pick([0.001, 1, 333, 1_000, 2_000, 5_000]))
    }
    expect([admitted > 80, refused > 80]).toEqual([true, true])
  })
})
