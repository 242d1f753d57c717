// @ts-check
// One thread of the tests of permits, and of rules of several fields, in shared memory.
import { threadId, workerData } from 'node:worker_threads'
import { concurrency, createLimiter, parseRule } from 'sluice'
import { attachSharedMemory } from 'sluice/shared-memory'

const { job, handle, control, broken } = workerData
const shared = new Int32Array(control)
/** Words: threads at work, and the most units ever seen held. */
const [READY, , MOST, REFUSED] = [0, 1, 2, 3]
/** Start of the holders' records: a version (odd while it holds), an instant, and units. */
const RECORDS = 64
const RECORD = 3
const time = new BigInt64Array(control, 64, 1)
const clock = {
  nowUs: () => Number(Atomics.load(time, 0)),
  sleep: () => Promise.reject(new Error('this clock cannot sleep')),
}
if (broken) {
  // A store without atomics.
  Atomics.compareExchange = /** @type {typeof Atomics.compareExchange} */ (
    (/** @type {Int32Array} */ words, /** @type {number} */ at, expected, replacement) => {
      const found = words[at]
      if (found === expected) words[at] = /** @type {number} */ (replacement)
      return found
    }
  )
}
const store = attachSharedMemory(handle, { clock })

let random = threadId + 1
function below(/** @type {number} */ n) {
  random = (Math.imul(random, 1_103_515_245) + 12_345) | 0
  return (random >>> 8) % n
}

/** Returns the time since the start, which fits into a word. */
const sinceUs = () => clock.nowUs() - job.startUs

/** Returns the units in all records at one instant: reads until no record changes meanwhile. */
function heldNow() {
  const words = shared.subarray(RECORDS, RECORDS + RECORD * Atomics.load(shared, 4))
  for (;;) {
    const before = words.slice()
    const us = sinceUs()
    const isSame = words.every((_, i) => Atomics.load(words, i) === before[i])
    if (!isSame || sinceUs() !== us) continue
    let held = 0
    for (let i = 0; i < before.length; i += RECORD) {
      if (before[i] % 2 === 1 && us < before[i + 1] + job.holdUs) held += before[i + 2]
    }
    return held
  }
}

function noteMost(/** @type {number} */ held) {
  for (let most = Atomics.load(shared, MOST); held > most; ) {
    const found = Atomics.compareExchange(shared, MOST, most, held)
    if (found === most) return
    most = found
  }
}

/**
 * Sleeps, so that other threads get a core: a thread takes seconds to start while all cores are
 * busy.
 */
const sleep = (/** @type {number} */ ms) => void Atomics.wait(shared, 5, 0, ms)

/** Acquires, extends and releases until it is terminated. Records never claim more than is held. */
function hold() {
  const { limit, ruleUs, slot, units } = job
  const limiter = createLimiter(concurrency({ limit, hold: `${ruleUs}us` }), {
    store,
    name: 'hold',
  })
  const at = RECORDS + RECORD * slot
  const begin = (/** @type {number} */ us) => {
    Atomics.store(shared, at + 1, us)
    Atomics.store(shared, at + 2, units)
    Atomics.add(shared, at, 1)
  }
  const end = () => Atomics.add(shared, at, 1)
  Atomics.add(shared, READY, 1)
  for (;;) {
    const us = sinceUs()
    const permit = limiter.tryAcquire('key', units)
    if (!permit.allowed) {
      Atomics.add(shared, REFUSED, 1)
      if (!broken) sleep(1)
      continue
    }
    begin(us)
    const held = heldNow()
    noteMost(held)
    if (below(2) === 0) sleep(below(3))
    end()
    if (below(4) === 0) {
      const laterUs = sinceUs()
      if (!permit.extend()) continue
      begin(laterUs)
      end()
    }
    permit.release()
  }
}

/** Decides by rules of several fields until it is terminated, and counts admissions. */
function spend() {
  const rules = job.rules.map((/** @type {string} */ rule) => parseRule(rule))
  const limiter = createLimiter(rules, { store, name: 'spend' })
  Atomics.add(shared, READY, 1)
  for (let i = 0; ; i += 1) {
    if (i % 200 === 0) sleep(1)
    const [user, org, tokens] = [below(2), below(2), 1 + below(3)]
    const cost = { requests: 1, tokens, everyone: 1 }
    if (!limiter.allow({ user: `${user}`, org: `${org}` }, cost)) continue
    // Count last, so that a terminated thread leaves at most one decision uncounted.
    Atomics.add(shared, RECORDS, 1)
    Atomics.add(shared, RECORDS + 1 + user, 1)
    Atomics.add(shared, RECORDS + 3 + org, tokens)
  }
}

if (job.kind === 'hold') hold()
else spend()
