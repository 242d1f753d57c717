// @ts-check
// Measures one way for threads to share a limit: node ways.mjs WAY THREADS MS
import cluster from 'node:cluster'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import rateLimiterFlexible from 'rate-limiter-flexible'
import { compactStore, createLimiter, tokenBucket } from 'sluice'
import { attachSharedMemory, sharedMemoryStore } from 'sluice/shared-memory'

const KEYS = 10_000
const LIMIT = 10_000_000
const rule = tokenBucket({ limit: LIMIT, per: '1d' })
const self = new URL(import.meta.url)

/** Returns a function that yields 10,000 keys in random order, each as a new string. */
function keySource(/** @type {number} */ seed) {
  let random = seed
  return () => {
    random = (Math.imul(random, 1_103_515_245) + 12_345) >>> 0
    return `user:${(random >>> 8) % KEYS}`
  }
}

/** Makes synchronous calls for `ms`, and returns decisions per second. */
function measure(/** @type {(key: string) => boolean} */ ask, seed = 1, ms = 1_000) {
  const next = keySource(seed)
  for (let i = 0; i < 200_000; i += 1) ask(next())
  let count = 0
  const startMs = performance.now()
  let nowMs = startMs
  while (nowMs - startMs < ms) {
    for (let i = 0; i < 1_000; i += 1) if (!ask(next())) throw new Error('refused')
    count += 1_000
    nowMs = performance.now()
  }
  return (count / (nowMs - startMs)) * 1_000
}

/** Does the same with asynchronous calls, one at a time. */
async function measureAwaited(
  /** @type {(key: string) => Promise<unknown>} */ ask,
  seed = 1,
  ms = 1_000,
) {
  const next = keySource(seed)
  for (let i = 0; i < 1_000; i += 1) await ask(next())
  let count = 0
  const startMs = performance.now()
  while (performance.now() - startMs < ms) {
    await ask(next())
    count += 1
  }
  return (count / (performance.now() - startMs)) * 1_000
}

/** The work of each thread, by way, and the data that the main thread passes to it. */
const ways = {
  shared: {
    data: () => ({ handle: sharedMemoryStore().handle }),
    thread({ handle, seed, ms }) {
      const limiter = createLimiter(rule, { store: attachSharedMemory(handle) })
      return measure((key) => limiter.allow(key), seed, ms)
    },
  },
  unshared: {
    data: () => ({}),
    thread({ seed, ms }) {
      const limiter = createLimiter(rule, { store: compactStore() })
      return measure((key) => limiter.allow(key), seed, ms)
    },
  },
  'post-message': {
    data: () => ({}),
    thread({ seed, ms }) {
      /** @type {(allowed: boolean) => void} */
      let answered
      parentPort?.on('message', (allowed) => answered(allowed))
      const ask = (/** @type {string} */ key) =>
        new Promise((resolve) => {
          answered = resolve
          parentPort?.postMessage(key)
        })
      return measureAwaited(ask, seed, ms)
    },
  },
}

/** @param {any} given */
async function runThread({ way, ...given }) {
  parentPort?.postMessage({ perSecond: await ways[way].thread(given) })
  parentPort?.close()
}

/** @param {string} way @param {number} threads @param {number} ms */
async function runThreads(way, threads, ms) {
  const data = ways[way].data()
  const limiter = createLimiter(rule, { store: compactStore() })
  const rates = Array.from({ length: threads }, (_, i) => {
    const thread = new Worker(self, { workerData: { way, ...data, seed: i + 1, ms } })
    return new Promise((resolve, reject) => {
      thread.on('error', reject)
      thread.on('message', (message) => {
        if (typeof message === 'string') thread.postMessage(limiter.allow(message))
        else resolve(message.perSecond)
      })
    })
  })
  return sum(await Promise.all(rates))
}

/** @param {number} processes @param {number} ms */
async function runCluster(processes, ms) {
  const { RateLimiterClusterMaster } = rateLimiterFlexible
  new RateLimiterClusterMaster()
  const rates = Array.from({ length: processes }, (_, i) => {
    const worker = cluster.fork({ SEED: String(i + 1), MS: String(ms) })
    return new Promise((resolve, reject) => {
      worker.on('error', reject)
      worker.on('message', (message) => {
        if (message.perSecond !== undefined) resolve(message.perSecond)
      })
    })
  })
  const all = sum(await Promise.all(rates))
  cluster.disconnect()
  return all
}

async function runProcess() {
  const { RateLimiterCluster } = rateLimiterFlexible
  const limiter = new RateLimiterCluster({
    keyPrefix: 'bench',
    points: LIMIT,
    duration: 86_400,
    timeoutMs: 5_000,
  })
  const ask = (/** @type {string} */ key) => limiter.consume(key)
  const perSecond = await measureAwaited(ask, Number(process.env.SEED), Number(process.env.MS))
  process.send?.({ perSecond })
}

/** @param {unknown[]} rates */
function sum(rates) {
  return rates.reduce((/** @type {number} */ all, rate) => all + Number(rate), 0)
}

if (!isMainThread) {
  await runThread(workerData)
} else if (cluster.isWorker) {
  await runProcess()
} else {
  const [way, threads, ms] = process.argv.slice(2)
  const run = way === 'cluster' ? runCluster : (count, ms) => runThreads(way, count, ms)
  console.log(await run(Number(threads), Number(ms)))
}
