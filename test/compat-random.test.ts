import { createRequire } from 'node:module'
import { ThrottlerStorageService } from '@nestjs/throttler'
import { MemoryStore } from 'express-rate-limit'
import { compactStore, memoryStore, type Store } from 'sluice'
import { sluiceStore as expressStore } from 'sluice/compat/express-rate-limit'
import { sluiceStore as fastifyStore } from 'sluice/compat/fastify-rate-limit'
import { sluiceStorage } from 'sluice/compat/nest-throttler'
import { type ManualClock, manualClock } from 'sluice/testing'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Random, seededRandom } from '../packages/sluice/src/testing/random.ts'
import { useRedis } from './redis/fixture.ts'
import { timedStore } from './redis/timed.ts'

const redis = useRedis()

/** Their stores read the fake `Date`; ours read the clock of their store. */
const stores = {
  memory: () => onClock((clock) => memoryStore({ clock })),
  compact: () => onClock((clock) => compactStore({ maxKeys: 1_000, clock })),
  redis() {
    const { clock, store } = timedStore(redis.client)
    return { clock, options: { store, timeoutMs: 10_000 } }
  },
}
const runs = { memory: 300, compact: 100, redis: 40 }
const names = Object.keys(stores) as (keyof typeof stores)[]

function onClock(make: (clock: ManualClock) => Store) {
  const clock = manualClock(Date.UTC(2100, 0) * 1_000)
  return { clock, options: { store: make(clock) } }
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** Resets both clocks, and returns a function that advances them together. */
function together(clock: ManualClock): (ms: number) => void {
  vi.clearAllTimers()
  vi.setSystemTime(clock.nowUs() / 1_000)
  return (ms) => {
    clock.advance(ms)
    vi.advanceTimersByTime(ms)
  }
}

/** Lists the runs in which the two stores answered differently, with the first different answers. */
async function differences(
  count: number,
  run: (random: Random) => Promise<[unknown, unknown][]>,
): Promise<string[]> {
  const found: string[] = []
  for (let seed = 1; seed <= count; seed += 1) {
    const answers = await run(seededRandom(seed))
    const at = answers.findIndex(
      ([ours, theirs]) => JSON.stringify(ours) !== JSON.stringify(theirs),
    )
    if (at >= 0) found.push(`seed ${seed}, answer ${at}: ${JSON.stringify(answers[at])}`)
  }
  return found
}

const WINDOW_MS = 100
/** The longest window that Sluice supports. */
const LONGEST_MS = 400 * 86_400_000
const VERBS = ['incr', 'incr', 'read'] as const
const KEYS = ['alice', 'bob', '', 'x'.repeat(2_000)]

describe.each(names)('on %s', (name) => {
  it('counts like the MemoryStore of express-rate-limit on random requests', async () => {
    const all = await differences(runs[name], async (random) => {
      const { clock, options } = stores[name]()
      const advance = together(clock)
      const [ours, theirs] = [expressStore(options), new MemoryStore()]
      for (const each of [ours, theirs]) each.init({ windowMs: WINDOW_MS } as never)
      const answers: [unknown, unknown][] = []
      for (let i = 0; i < 40; i += 1) {
        const key = random.pick(KEYS)
        const verb = random.pick(['increment', 'increment', 'decrement', 'get', 'reset', 'go on'])
        if (verb === 'go on') advance(random.below(WINDOW_MS))
        if (verb === 'increment' || verb === 'get') {
          answers.push([await ours[verb](key), { ...(await theirs[verb](key)) }])
        }
        // The middleware takes nothing back when the window has ended.
        if (verb === 'decrement' && (await theirs.get(key))) {
          for (const each of [ours, theirs]) await each.decrement(key)
        }
        if (verb === 'reset') for (const each of [ours, theirs]) await each.resetKey(key)
        if (i === 30) for (const each of [ours, theirs]) await each.resetAll()
      }
      theirs.shutdown()
      return answers.map(([own, other]) => [own ?? {}, other])
    })
    expect(all).toEqual([])
  })

  it.each([{}, { continueExceeding: true }, { exponentialBackoff: true }])(
    'counts like the LocalStore of @fastify/rate-limit with %o',
    async (theirOptions) => {
      const all = await differences(runs[name] / 2, async (random) => {
        const { clock, options } = stores[name]()
        const advance = together(clock)
        const settings = { continueExceeding: false, exponentialBackoff: false, ...theirOptions }
        const ours = new (fastifyStore(options))(settings)
        const theirs = new LocalStore(settings.continueExceeding, settings.exponentialBackoff)
        const max = random.below(4)
        const answers: [unknown, unknown][] = []
        let sinceMs = 0
        for (let i = 0; i < 40; i += 1) {
          const goesMs = random.below(WINDOW_MS / 2)
          // Longer than one window theirs does not keep anybody out.
          const isKept = settings.exponentialBackoff && sinceMs + goesMs >= WINDOW_MS
          if (!isKept) {
            advance(goesMs)
            sinceMs += goesMs
          }
          const verbs = settings.exponentialBackoff ? (['incr'] as const) : VERBS
          const verb = random.pick(verbs)
          if (verb === 'incr') sinceMs = 0
          const key = settings.exponentialBackoff ? 'alice' : random.pick(KEYS)
          answers.push([await asked(ours, verb, key, max), await asked(theirs, verb, key, max)])
        }
        return answers
      })
      expect(all).toEqual([])
    },
  )

  it('counts like the storage of @nestjs/throttler, for one window and the block after it', async () => {
    const all = await differences(runs[name], async (random) => {
      const { clock, options } = stores[name]()
      const advance = together(clock)
      const [ours, theirs] = [sluiceStorage(options), new ThrottlerStorageService()]
      const [ttl, limit, block] = [10_000, 1 + random.below(4), 1_000 + random.below(20_000)]
      const answers: [unknown, unknown][] = []
      let nowMs = 0
      let wasBlocked = false
      for (let i = 0; i < 30; i += 1) {
        const goesMs = random.below(3_000)
        nowMs += goesMs
        // They count each request for itself, so that a window ends bit by bit.
        if (nowMs >= ttl && !wasBlocked) break
        advance(goesMs)
        const both = [ours, theirs].map((each) => each.increment('alice', ttl, limit, block, 'a'))
        const [own, other] = await Promise.all(both)
        const pick = wasBlocked && !own.isBlocked ? afterBlock : nowMs < ttl ? early : inBlock
        answers.push([pick(own), pick(other)])
        if (wasBlocked && !own.isBlocked) break
        wasBlocked = own.isBlocked
      }
      theirs.onApplicationShutdown()
      return answers
    })
    expect(all).toEqual([])
  })
})

type Answer = Awaited<ReturnType<ThrottlerStorageService['increment']>>

/** The fields that the guard uses, which theirs fills correctly until it forgets a request. */
const early = ({ totalHits, timeToExpire, isBlocked, timeToBlockExpire }: Answer) =>
  isBlocked ? { totalHits, timeToBlockExpire } : { totalHits, timeToExpire }
const inBlock = ({ isBlocked, timeToBlockExpire }: Answer) => ({ isBlocked, timeToBlockExpire })
const afterBlock = ({ isBlocked, totalHits }: Answer) => ({ isBlocked, totalHits })

interface AskedStore {
  incr: Ask
  read: Ask
}
type Ask = (
  key: string,
  callback: (error: unknown, result: { current: number; ttl: number }) => void,
  ms: number,
  max: number,
) => void

const { default: LocalStore } = (await import(
  createRequire(import.meta.url).resolve('@fastify/rate-limit/store/LocalStore.js')
)) as { default: new (continues: boolean, doubles: boolean) => AskedStore }

function asked(store: unknown, verb: 'incr' | 'read', key: string, max: number): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const callback = (error: unknown, result: { current: number; ttl: number }) => {
      if (error) reject(error)
      else resolve({ current: result.current, ttl: Math.min(result.ttl, LONGEST_MS) })
    }
    ;(store as AskedStore)[verb](key, callback, WINDOW_MS, max)
  })
}
