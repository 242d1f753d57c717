// @ts-check
// One thread of the tests of shared memory. It uses the built library, as a user's thread would.
import { parentPort, threadId, workerData } from 'node:worker_threads'
import { createLimiter, parseRule } from 'sluice'
import { attachSharedMemory } from 'sluice/shared-memory'

const { job, handle, control, broken } = workerData
/** Words that all threads of a run share: how many are ready, go, done, and a counter of events. */
const shared = new Int32Array(control)
const [READY, GO, DONE, EVENTS] = [0, 1, 2, 3]
/** The clock that all of them read, in microseconds. */
const time = new BigInt64Array(control, 64, 1)
const clock = {
  nowUs: () => Number(Atomics.load(time, 0)),
  sleep: () => Promise.reject(new Error('this clock cannot sleep')),
}

if (broken) {
  // A store without atomics, as if it were written for a single thread.
  Atomics.compareExchange = /** @type {typeof Atomics.compareExchange} */ (
    (/** @type {Int32Array} */ words, /** @type {number} */ at, expected, replacement) => {
      const found = words[at]
      if (found === expected) words[at] = /** @type {number} */ (replacement)
      return found
    }
  )
}

const store = attachSharedMemory(handle, { clock })
const limiter = createLimiter(
  job.rules.map((/** @type {string} */ rule) => parseRule(rule)),
  { store, name: job.name },
)

/** Waits until all threads have arrived. */
function barrier() {
  Atomics.add(shared, READY, 1)
  Atomics.notify(shared, READY)
  Atomics.wait(shared, GO, 0)
}

/**
 * Decides `count` times, on keys in its own order; the decisions also advance the clock. Then it
 * continues until all threads have made a fifth of their decisions, or gives up: with more threads
 * than cores, the first would otherwise finish before the last has started.
 */
function stress({ count, keys, tickUs, threads, number }) {
  const admitted = new Int32Array(keys)
  const names = Array.from({ length: keys }, (_, i) => `key ${i}`)
  const progress = shared.subarray(64, 64 + threads)
  let random = threadId + 1
  let together = 0
  const isLate = () => progress.some((made) => made < count / 5)
  barrier()
  for (let i = 0; i < count || (i < 20 * count && isLate()); i += 1) {
    random = (Math.imul(random, 1_103_515_245) + 12_345) | 0
    const key = (random >>> 8) % keys
    if (limiter.check(names[key]).allowed) admitted[key] += 1
    if (tickUs > 0) Atomics.add(time, 0, BigInt(tickUs))
    if (i % 64 === 0) Atomics.store(progress, number, i)
    if (shared[DONE] === 0) together = i + 1
  }
  Atomics.add(shared, DONE, 1)
  return { admitted, together }
}

/** Plays its part of each round's history, and records when each call began and ended. */
function history({ rounds, plays }) {
  const events = []
  barrier()
  for (let round = 0; round < rounds; round += 1) {
    // All threads start a round together, so that their calls overlap.
    Atomics.add(shared, 4, 1)
    while (Atomics.load(shared, 4) < job.threads * (round + 1));
    for (const { verb, key, cost } of plays[round % plays.length]) {
      const name = `${key} ${round}`
      const began = Atomics.add(shared, EVENTS, 1)
      const answer = verb === 'block' ? limiter.block(name, 1_000) : limiter[verb](name, cost)
      events.push({ verb, key, cost, began, ended: Atomics.add(shared, EVENTS, 1), answer })
    }
  }
  return events
}

/** Decides until it is terminated, and counts admissions. */
function hammer({ keys }) {
  const names = Array.from({ length: keys }, (_, i) => `key ${i}`)
  let random = threadId + 1
  Atomics.add(shared, READY, 1)
  for (;;) {
    random = (Math.imul(random, 1_103_515_245) + 12_345) | 0
    const key = (random >>> 8) % keys
    if (limiter.allow(names[key])) Atomics.add(shared, 64 + key, 1)
  }
}

const jobs = { stress, history, hammer }
parentPort?.postMessage(jobs[job.kind](job))
