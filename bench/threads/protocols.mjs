// @ts-check
// Compares the protocols of ADR 0005 on one state per key: node protocols.mjs
// Each thread increments random states. At the end, lost or extra increments are reported.
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { median } from '../lib/statistics.mjs'
import { numberText, textTable } from '../lib/table.mjs'

const CALLS = 2_000_000
const REPETITIONS = 7
const KEYS = [1, 10_000]
const THREADS = [1, 2]

/**
 * Each creates, for a buffer with 64 bytes per key, a function that increments a key's state.
 * @type {Record<string, (buffer: SharedArrayBuffer) => (key: number) => void>}
 */
const protocols = {
  'no atomics (wrong)'(buffer) {
    const cells = new Float64Array(buffer)
    return (key) => {
      cells[8 * key] += 1
    }
  },
  'spin lock per key, float64 state'(buffer) {
    const words = new Int32Array(buffer)
    const cells = new Float64Array(buffer)
    return (key) => {
      while (Atomics.compareExchange(words, 16 * key + 2, 0, 1) !== 0);
      cells[8 * key] += 1
      Atomics.store(words, 16 * key + 2, 0)
    }
  },
  'compare-and-swap on 64 bits'(buffer) {
    const words = new BigInt64Array(buffer)
    return (key) => {
      for (;;) {
        const seen = words[8 * key]
        // As in a real store: a number for the arithmetic, a BigInt for the swap.
        const next = BigInt(Number(seen) + 1)
        if (Atomics.compareExchange(words, 8 * key, seen, next) === seen) return
      }
    }
  },
  'compare-and-swap on 32 bits'(buffer) {
    const words = new Int32Array(buffer)
    return (key) => {
      for (;;) {
        const seen = words[16 * key]
        if (Atomics.compareExchange(words, 16 * key, seen, seen + 1) === seen) return
      }
    }
  },
  'chosen: write aside, commit by compare-and-swap'(buffer) {
    const words = new Int32Array(buffer)
    const cells = new Float64Array(buffer)
    const LOCKED = 1 << 31
    return (key) => {
      for (;;) {
        const version = words[16 * key]
        if (version < 0) continue
        const next = cells[8 * key + 1 + (version & 1)] + 1
        if (Atomics.compareExchange(words, 16 * key, version, version | LOCKED) !== version)
          continue
        cells[8 * key + 1 + ((version + 1) & 1)] = next
        const mine = version | LOCKED
        if (Atomics.compareExchange(words, 16 * key, mine, version + 1) === mine) return
      }
    }
  },
}

/** Returns the sum of all states, for any protocol. */
function total(/** @type {string} */ protocol, /** @type {SharedArrayBuffer} */ buffer) {
  const [words, cells] = [new Int32Array(buffer), new Float64Array(buffer)]
  const big = new BigInt64Array(buffer)
  let sum = 0
  for (let key = 0; key < buffer.byteLength / 64; key += 1) {
    if (protocol.includes('64 bits')) sum += Number(big[8 * key])
    else if (protocol.includes('32 bits')) sum += words[16 * key]
    else if (protocol.startsWith('chosen')) sum += cells[8 * key + 1 + (words[16 * key] & 1)]
    else sum += cells[8 * key]
  }
  return sum
}

/**
 * @param {{ protocol: string, buffer: SharedArrayBuffer, control: SharedArrayBuffer, seed: number
 * }} given
 */
function runThread({ protocol, buffer, control, seed }) {
  const add = protocols[protocol](buffer)
  const keys = buffer.byteLength / 64
  const words = new Int32Array(control)
  let random = seed
  const play = (/** @type {number} */ calls) => {
    for (let i = 0; i < calls; i += 1) {
      random = (Math.imul(random, 1_103_515_245) + 12_345) >>> 0
      add((random >>> 8) % keys)
    }
  }
  play(CALLS / 10)
  Atomics.add(words, 0, 1)
  Atomics.notify(words, 0)
  Atomics.wait(words, 1, 0)
  const startMs = performance.now()
  play(CALLS)
  parentPort?.postMessage((1_000 * CALLS) / (performance.now() - startMs))
}

/** @param {string} protocol @param {number} keys @param {number} threads */
async function measure(protocol, keys, threads) {
  const buffer = new SharedArrayBuffer(64 * keys)
  const control = new SharedArrayBuffer(8)
  const words = new Int32Array(control)
  const rates = Array.from({ length: threads }, (_, i) => {
    const data = { protocol, buffer, control, seed: i + 1 }
    const thread = new Worker(new URL(import.meta.url), { workerData: data })
    return new Promise((resolve, reject) => thread.on('message', resolve).on('error', reject))
  })
  while (Atomics.load(words, 0) < threads) await new Promise((done) => setTimeout(done, 2))
  Atomics.store(words, 1, 1)
  Atomics.notify(words, 1)
  const perSecond = (await Promise.all(rates)).reduce((all, rate) => all + rate, 0)
  return { perSecond, off: total(protocol, buffer) - threads * CALLS * 1.1 }
}

if (isMainThread) {
  /** @type {Map<string, { perSecond: number, off: number }[]>} */
  const samples = new Map()
  for (let repetition = 0; repetition < REPETITIONS; repetition += 1) {
    for (const protocol of Object.keys(protocols)) {
      for (const keys of KEYS) {
        for (const threads of THREADS) {
          const id = JSON.stringify([protocol, keys, threads])
          samples.set(id, [...(samples.get(id) ?? []), await measure(protocol, keys, threads)])
        }
      }
    }
  }
  const header = KEYS.flatMap((keys) =>
    THREADS.map(
      (threads) =>
        `${threads} thread${threads > 1 ? 's' : ''}, ${keys.toLocaleString('en')} key${keys > 1 ? 's' : ''}`,
    ),
  )
  const rows = Object.keys(protocols).map((protocol) => {
    const of = KEYS.flatMap((keys) =>
      THREADS.map((threads) => samples.get(JSON.stringify([protocol, keys, threads])) ?? []),
    )
    const off = of.flat().some((sample) => sample.off !== 0)
    return [
      protocol,
      ...of.map((each) => numberText(median(each.map(({ perSecond }) => perSecond / 1e6)))),
      off ? 'no' : 'yes',
    ]
  })
  console.log(`Million changes per second, all threads together; median of ${REPETITIONS}.\n`)
  console.log(textTable(['', ...header, 'exact'], rows))
} else {
  runThread(workerData)
}
