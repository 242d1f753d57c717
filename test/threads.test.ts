import { setTimeout } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { createLimiter, type Decision, type Limiter, parseRule } from 'sluice'
import { sharedMemoryStore } from 'sluice/shared-memory'
import { createModel } from 'sluice/testing'
import { beforeAll, describe, expect, it } from 'vitest'
import { HEAD_BYTES } from '../packages/sluice/src/stores/shared-memory/directory.ts'
import { movedFrom, regionOf } from '../packages/sluice/src/stores/shared-memory/region.ts'
import { answerOf, buildLibrary, type Crew, createCrew } from './threads/crew.ts'
import { type Call, linearization } from './threads/linearizable.ts'
import { stalledCopy } from './threads/stalls.ts'

const decisions = Number(process.env.SLUICE_DECISIONS ?? 300_000)
const stallMs = Number(process.env.SLUICE_STALL_MS ?? 5_000)
const terminateMs = Number(process.env.SLUICE_TERMINATE_MS ?? 10_000)
const timeout = 60_000 + decisions / 10 + terminateMs

beforeAll(buildLibrary, 60_000)

interface Stressed {
  readonly admitted: Int32Array
  readonly together: number
}

/** Lets all threads decide on the same keys. Returns the admitted units per key. */
async function stress(
  threads: number,
  keys: number,
  rules: readonly string[],
  tickUs: number,
  { broken = false, maxKeys = 10_000 } = {},
) {
  const crew = createCrew(maxKeys)
  const limiter = createLimiter(rules.map(parseRule), { store: crew.store, name: 'stress' })
  const capacity = Math.min(...rules.map((rule) => parseRule(rule).capacity))
  // Spend before they start, so that no bucket is full again while they run.
  const admitted = Array.from({ length: keys }, (_, i) => {
    if (tickUs === 0) return 0
    limiter.charge(`key ${i}`, capacity)
    return capacity
  })
  const count = Math.ceil(decisions / threads)
  const job = { kind: 'stress', rules, name: 'stress', count, keys, tickUs, threads } as const
  const answers = await crew.run<Stressed>(threads, (number) => ({ ...job, number }), broken)
  for (let i = 0; i < keys; i += 1) {
    for (const answer of answers) admitted[i] += answer.admitted[i]
    while (limiter.check(`key ${i}`).allowed) admitted[i] += 1
  }
  const together = answers.map((answer) => answer.together / count)
  return { ...crew, limiter, admitted, together }
}

/** Tells whether the model admits one more unit at the end, after `units` since the start. */
const modelAfter = (rule: string, startUs: number, endUs: number) => (units: number) => {
  const model = createModel()
  model.charge('key', [parseRule(rule)], units, startUs)
  return model.decide('key', [parseRule(rule)], 1, endUs, false).allowed
}

/** Checks the fraction of decisions that each thread made before the first one had finished. */
function expectTogether(together: readonly number[]): void {
  expect(Math.min(...together), `of ${together}`).toBeGreaterThan(0.1)
}

describe('threads that share one limiter', () => {
  it.each([2, 4, 8, 16].flatMap((threads) => [1, 8, 1_000].map((keys) => ({ threads, keys }))))(
    'admit exactly what the model admits: $threads threads, $keys keys',
    async ({ threads, keys }) => {
      // A third of the decisions can pass. The gap is no whole number of microseconds.
      const rule = `300/${keys}ms burst 50 token-bucket`
      const { admitted, together, startUs, clock } = await stress(threads, keys, [rule], 1)
      const passesAfter = modelAfter(rule, startUs, clock.nowUs())
      const wrong = admitted.filter((units) => passesAfter(units) || !passesAfter(units - 1))
      expect(wrong).toEqual([])
      expectTogether(together)
    },
    timeout,
  )

  it.each(['fixed-window', 'sliding-window-counter', 'token-bucket', 'gcra', 'leaky-bucket'])(
    'admit exactly the capacity of a %s while time stands still',
    async (algorithm) => {
      const { admitted } = await stress(4, 5, [`1000/1h ${algorithm}`], 0)
      const { capacity } = parseRule(`1000/1h ${algorithm}`)
      expect(admitted).toEqual([capacity, capacity, capacity, capacity, capacity])
    },
    timeout,
  )

  it(
    'spend from several rules together or from none',
    async () => {
      const rules = ['1000/1h name a', '900/1h name b gcra', '5000/1h name c fixed-window']
      const { admitted, limiter } = await stress(4, 3, rules, 0)
      expect(admitted).toEqual([900, 900, 900])
      expect(limiter.peek('key 0').rules.map((rule) => rule.remaining)).toEqual([100, 0, 4_100])
    },
    timeout,
  )

  it(
    'fill every window to its limit',
    async () => {
      const per = 1_000
      const { admitted, startUs, clock } = await stress(
        2,
        1,
        [`300/${per / 1_000}ms align clock fixed-window`],
        1,
      )
      const windows = Math.floor(clock.nowUs() / per) - Math.floor(startUs / per) + 1
      expect(admitted).toEqual([300 * windows])
    },
    timeout,
  )

  it.each(['token-bucket', 'sliding-window-counter', 'gcra'])(
    'admit no key more than its %s while 64 of them rotate through 16 rows',
    async (algorithm) => {
      const rule = `50/1h ${algorithm}`
      const { admitted, limiter } = await stress(4, 64, [rule], 0, { maxKeys: 16 })
      expect(Math.max(...admitted)).toBeLessThanOrEqual(50)
      expect(Math.max(...admitted)).toBeGreaterThan(0)
      expect(limiter.stats().evictions).toBeGreaterThan(0)
      expect(limiter.stats().rows).toBeLessThanOrEqual(16 + 4)
    },
    timeout,
  )

  it(
    'admit more on a store without atomics, which proves these tests',
    async () => {
      const { admitted } = await stress(4, 1, ['100000/1h'], 0, { broken: true })
      expect(admitted[0]).toBeGreaterThan(100_000)
    },
    timeout,
  )
})

const verbs = ['check', 'check', 'check', 'peek', 'charge', 'refund', 'block', 'unblock', 'reset']

/** Records the calls of threads on one key in many rounds, and checks every round. */
async function histories(threads: number, rounds: number, rule: string, broken = false) {
  const crew = createCrew(100_000)
  let seed = 42
  const next = (below: number) => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
    return (seed >>> 8) % below
  }
  const call = () => ({ verb: verbs[next(verbs.length)], key: 'key', cost: 1 + next(2) })
  const perThread = 12 / threads
  const plays = () => Array.from({ length: 97 }, () => Array.from({ length: perThread }, call))
  const job = { kind: 'history', rules: [rule], name: 'history', threads, rounds } as const
  const parts = await crew.run<Call[]>(threads, () => ({ ...job, plays: plays() }), broken)
  let overlapping = 0
  let impossible = 0
  for (let round = 0; round < rounds; round += 1) {
    const from = round * perThread
    const calls = parts.flatMap((part) => part.slice(from, from + perThread))
    if (calls.some((a) => calls.some((b) => a.began < b.began && b.began < a.ended))) {
      overlapping += 1
    }
    if (!linearization(calls, [parseRule(rule)], crew.startUs)) impossible += 1
  }
  return { overlapping, impossible }
}

describe('recorded histories', () => {
  // Threads beyond the cores wait for each other in every round, so these are fewer.
  const rounds = Math.max(500, Math.round(decisions / 100))
  it.each(
    ['5/1m', '4/1m fixed-window', '7/1s burst 3 gcra'].flatMap((rule) => [
      { rule, threads: 2, rounds },
      { rule, threads: 3, rounds: rounds / 10 },
    ]),
  )(
    'of $threads threads are linearizable: $rule',
    async ({ rule, threads, rounds }) => {
      // On a busy machine threads seldom run at the same time, which alone proves something.
      let overlaps = 0
      for (let tries = 0; tries < 20 && overlaps <= rounds / 10; tries += 1) {
        const { impossible, overlapping } = await histories(threads, rounds, rule)
        expect(impossible).toBe(0)
        overlaps += overlapping
      }
      expect(overlaps, `of ${rounds}`).toBeGreaterThan(rounds / 10)
    },
    timeout,
  )

  it('are not linearizable on a store without atomics, which proves this test', async () => {
    const { impossible } = await histories(2, 3_000, '5/1m', true)
    expect(impossible).toBeGreaterThan(0)
  })
})

describe('threads that are terminated at any moment', () => {
  it(
    `leave every key usable, and keep admitted units, after ${terminateMs / 1_000} s`,
    async () => {
      const keys = 4
      const limit = 10_000_000
      const rule = `${limit}/1h`
      const crew = createCrew()
      const limiter = createLimiter(parseRule(rule), { store: crew.store, name: 'hammer' })
      const job = { kind: 'hammer', rules: [rule], name: 'hammer', keys } as const
      const alive = new Set(Array.from({ length: 3 }, () => crew.start(job)))
      let terminated = 0
      const terminate = async (thread: Worker) => {
        alive.delete(thread)
        await thread.terminate()
        terminated += 1
      }
      const endMs = performance.now() + terminateMs
      while (performance.now() < endMs) {
        await setTimeout(Math.random() * 20)
        // Only once it is at work.
        if (Atomics.load(crew.words, 0) <= terminated) continue
        const [oldest] = alive
        await terminate(oldest)
        alive.add(crew.start(job))
        // All units spent would be all refused, and a refusal takes no lock.
        for (let i = 0; i < keys; i += 1) {
          if (limiter.peek(`key ${i}`).remaining > limit / 2) continue
          limiter.refund(`key ${i}`, limit / 4)
          crew.words[64 + i] -= limit / 4
        }
      }
      for (const thread of alive) await terminate(thread)
      let lost = 0
      let longestMs = 0
      for (let i = 0; i < keys; i += 1) {
        const startMs = performance.now()
        const { remaining } = limiter.peek(`key ${i}`)
        expect(limiter.check(`key ${i}`, remaining).allowed).toBe(true)
        expect(limiter.allow(`key ${i}`)).toBe(false)
        longestMs = Math.max(longestMs, performance.now() - startMs)
        lost += limit - remaining - crew.words[64 + i]
      }
      // A thread may have ended between being admitted and counting it.
      expect(lost).toBeGreaterThanOrEqual(0)
      expect(lost).toBeLessThanOrEqual(terminated)
      // 10 ms for each lock left behind, and time for the machine to do other things.
      expect(longestMs).toBeLessThan(1_000)
      expect(terminated).toBeGreaterThan(terminateMs / 500)
      // Or there would have been nothing to heal.
      expect(movedBuckets(crew)).toBeGreaterThan(0)
    },
    timeout,
  )
})

describe('a thread that stalls during a decision while it holds the lock', () => {
  /** Starts the thread, calls `meanwhile`, lets it continue, and returns its answer. */
  async function stalled(meanwhile: (limiter: Limiter, crew: Crew) => void) {
    const crew = createCrew()
    const limiter = createLimiter(parseRule('100/1h'), { store: crew.store, name: 'stall' })
    limiter.check('key', 10)
    const answer = answerOf<boolean>(crew.startFile('./stall.mjs', { key: 'key', cost: 5 }))
    while (Atomics.load(crew.words, 0) === 0) await setTimeout(1)
    meanwhile(limiter, crew)
    Atomics.store(crew.words, 1, 1)
    Atomics.notify(crew.words, 1)
    return { allowed: await answer, limiter, crew }
  }

  it('delays others for 10 ms, and overwrites nothing when it continues', async () => {
    const { allowed, limiter, crew } = await stalled((limiter) => {
      expect(limiter.peek('key').remaining).toBe(90)
      const startMs = performance.now()
      expect(limiter.check('key', 20).remaining).toBe(70)
      const waitedMs = performance.now() - startMs
      expect(waitedMs).toBeGreaterThan(9)
      expect(waitedMs).toBeLessThan(500)
      for (let i = 0; i < 20; i += 1) limiter.check('key')
      expect(limiter.peek('key').remaining).toBe(50)
    })
    expect(allowed).toBe(true)
    expect(limiter.peek('key').remaining).toBe(45)
    expect(movedBuckets(crew)).toBe(1)
  })

  it('overwrites others if a timeout alone breaks its lock, which proves this test', async () => {
    const { limiter } = await stalled((limiter, crew) => {
      breakLocks(crew)
      for (let i = 0; i < 21; i += 1) limiter.check('key')
    })
    expect(limiter.peek('key').remaining).not.toBe(90 - 21 - 5)
  })

  it('frees its place once it has continued', async () => {
    const { crew } = await stalled((limiter) => void limiter.check('key'))
    const { region, words } = tableOf(crew)
    expect(words[region.freeAt + region.buckets]).toBe(1)
    const freed = words.subarray(region.freeAt, region.freeAt + region.buckets)
    expect(freed.filter((state) => state === 2)).toHaveLength(1)
  })
})

describe('threads that pause between any two steps of the protocol', () => {
  /**
   * Runs eight threads with pauses on a patched copy of the library. Returns how many units were
   * lost.
   */
  async function stallAnywhere(change: readonly (readonly [string, string])[] = []) {
    const copy = stalledCopy(change)
    expect(copy.steps).toBeGreaterThan(20)
    const keys = 3
    const store = sharedMemoryStore({ maxKeys: 10_000 })
    const limiter = createLimiter(parseRule('10000000/400d fixed-window'), { store })
    const workerData = { dist: copy.dist, handle: store.handle, keys, ms: stallMs }
    const threads = Array.from({ length: 8 }, () =>
      answerOf<{ admitted: Int32Array; pauses: number }>(
        new Worker(new URL('./threads/stalls.mjs', import.meta.url), { workerData, execArgv: [] }),
      ),
    )
    try {
      const answers = await Promise.all(threads)
      let lost = 0
      for (let i = 0; i < keys; i += 1) {
        const admitted = answers.reduce((sum, answer) => sum + answer.admitted[i], 0)
        lost += Math.abs(admitted - used(limiter.peek(`key ${i}`)))
      }
      return { lost, pauses: answers.reduce((sum, { pauses }) => sum + pauses, 0) }
    } finally {
      copy.remove()
    }
  }
  const used = ({ capacity, remaining }: Decision) => capacity - remaining

  it(
    'lose nothing when they break each other’s locks',
    async () => {
      const { lost, pauses } = await stallAnywhere()
      expect(lost).toBe(0)
      expect(pauses).toBeGreaterThan(100)
    },
    timeout,
  )

  it.each([
    [
      'a lock is broken by time alone',
      'move(index, place);\n    }',
      'Atomics.compareExchange(words, bucket.head, state, state & VERSION);\n    }',
    ],
    [
      'a lock on a place is not checked to be a lock on the bucket',
      'words[whereOf(index)] === entry',
      'true',
    ],
  ])(
    'lose units if %s, which proves this test',
    async (_, from, to) => {
      const { lost } = await stallAnywhere([[from, to]])
      expect(lost).toBeGreaterThan(0)
    },
    timeout,
  )
})

/** Returns the words of the first table, which has a one-number rule. */
function tableOf({ store }: Crew) {
  const region = regionOf(10_000, [{ name: '', algorithm: '', grows: false, cells: 1, at: 0 }])
  return { region, words: new Int32Array(store.handle.buffer, HEAD_BYTES, region.bytes / 4) }
}

function movedBuckets(crew: Crew): number {
  const { region, words } = tableOf(crew)
  return movedFrom(region, words)
}

/** Breaks all locks, as a store with timed locks would. */
function breakLocks(crew: Crew): void {
  const { region, words } = tableOf(crew)
  for (let place = 0; place < region.places; place += 1) {
    words[region.headsAt + place * region.headWords] &= 0x7fff_ffff
  }
}
