import { setTimeout } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import { concurrency, createLimiter, parseRule } from 'sluice'
import { beforeAll, describe, expect, it } from 'vitest'
import { buildLibrary, type Crew, createCrew } from './threads/crew.ts'

const THREADS = 8
const runMs = Number(process.env.SLUICE_TERMINATE_MS ?? 3_000)
const timeout = 60_000 + runMs

beforeAll(buildLibrary, 60_000)

/**
 * Words that threads write: threads at work, the most units held, refusals; and number of records.
 */
const [READY, MOST, REFUSED, COUNT, RECORDS] = [0, 2, 3, 4, 64]

interface Run {
  readonly crew: Crew
  /** Starts a thread with its own number. */
  start(number: number): Worker
  /** The longest step of the clock. */
  readonly tickUs: number
  readonly terminates?: boolean
  /** Ends it before its time. */
  isOver?(crew: Crew): boolean
}

/** Runs threads, moves their clock, and terminates them at random. Returns how many it terminated. */
async function hammer({ crew, start, tickUs, terminates = true, isOver }: Run): Promise<number> {
  let started = 0
  const alive = new Set<Worker>()
  const add = () => {
    Atomics.store(crew.words, COUNT, started + 1)
    alive.add(start(started))
    started += 1
  }
  for (let i = 0; i < THREADS; i += 1) add()
  const endMs = performance.now() + runMs
  while (performance.now() < endMs && !isOver?.(crew)) {
    await setTimeout(Math.random() * 10)
    crew.advance(Math.floor(Math.random() * tickUs))
    // Only once all threads are at work.
    if (!terminates || Atomics.load(crew.words, READY) < started) continue
    const [oldest] = alive
    alive.delete(oldest)
    await oldest.terminate()
    add()
  }
  await Promise.all([...alive].map((thread) => thread.terminate()))
  return started - THREADS
}

describe('eight threads that hold units of one concurrency limit', () => {
  const limit = 10
  const holdUs = 400_000
  const rule = concurrency({ limit, hold: `${holdUs}us` })

  /** `ruleUs`: how long holds last, where that is not what they should. */
  type Options = Partial<Run> & { readonly broken?: boolean; readonly ruleUs?: number }

  async function run({ ruleUs = holdUs, ...options }: Options = {}) {
    const crew = createCrew()
    const job = { kind: 'hold', limit, holdUs, ruleUs, startUs: crew.startUs }
    const start = (slot: number) => {
      const own = { ...job, slot, units: 1 + (slot % 3) }
      return crew.startFile('./permits.mjs', { job: own, broken: options.broken })
    }
    const terminated = await hammer({ crew, start, tickUs: 10_000, ...options })
    return { crew, terminated }
  }

  it(
    'never hold more together while random ones are terminated, and all units come back in time',
    async () => {
      const { crew, terminated } = await run()
      expect(crew.words[MOST]).toBeLessThanOrEqual(limit)
      expect(crew.words[MOST]).toBeGreaterThan(limit / 2)
      expect(crew.words[REFUSED]).toBeGreaterThan(0)
      expect(terminated).toBeGreaterThan(runMs / 1_000)
      const limiter = createLimiter(rule, { store: crew.store, name: 'hold' })
      crew.advance(holdUs * 1.25)
      expect(limiter.tryAcquire('key', limit).allowed).toBe(true)
    },
    timeout,
  )

  it(
    'hold too long where a hold lasts ten times as long, so that test can fail',
    async () => {
      const { crew } = await run({ ruleUs: 10 * holdUs })
      const limiter = createLimiter(rule, { store: crew.store, name: 'hold' })
      crew.advance(holdUs * 1.25)
      expect(limiter.tryAcquire('key', limit).allowed).toBe(false)
    },
    timeout,
  )

  it(
    'hold more on a store without atomics, which proves that test',
    async () => {
      let most = 0
      for (let tries = 0; tries < 10 && most <= limit; tries += 1) {
        const isOver = ({ words }: Crew) => words[MOST] > limit
        const { crew } = await run({ broken: true, terminates: false, tickUs: 2, isOver })
        most = crew.words[MOST]
      }
      expect(most).toBeGreaterThan(limit)
    },
    10 * timeout,
  )
})

describe('eight threads with rules of several fields, spent one by one', () => {
  const rules = [
    '2000/1s burst 20 name requests by user',
    '10000000/1h fixed-window name tokens by org',
    '3000/1s burst 30 name everyone by global',
  ]

  it.each([false, true])(
    'exceed no rule, and leave nothing spent if one refuses; terminated: %o',
    async (terminates) => {
      const crew = createCrew()
      const job = { kind: 'spend', rules }
      const start = () => crew.startFile('./permits.mjs', { job })
      const limiter = createLimiter(rules.map(parseRule), { store: crew.store, name: 'spend' })
      const terminated = await hammer({ crew, start, tickUs: 5_000, terminates })
      const elapsedS = (crew.clock.nowUs() - crew.startUs) / 1e6
      const [everyone, ...counted] = crew.words.subarray(RECORDS, RECORDS + 5)
      expect(everyone).toBeLessThanOrEqual(30 + 3_000 * elapsedS)
      expect(everyone).toBeGreaterThan(500 * elapsedS)
      for (const requests of counted.slice(0, 2)) {
        expect(requests).toBeLessThanOrEqual(20 + 2_000 * elapsedS)
      }
      let lost = 0
      for (const [i, org] of ['0', '1'].entries()) {
        const { capacity, remaining } = limiter.peek({ user: null, org }).rules[0]
        lost += capacity - remaining - counted[2 + i]
      }
      // Only a decision that was cut off: its thread spent three tokens at most, and counted none.
      expect(lost).toBeGreaterThanOrEqual(0)
      expect(lost).toBeLessThanOrEqual(3 * (terminated + THREADS))
      if (!terminates) expect(terminated).toBe(0)
    },
    timeout,
  )
})
