// @ts-check
// A thread that randomly pauses between two steps of the protocol.
import { parentPort, workerData } from 'node:worker_threads'

const { dist, handle, keys, ms } = workerData
const { createLimiter, parseRule } = await import(`${dist}/index.js`)
const { attachSharedMemory } = await import(`${dist}/stores/shared-memory/shared-memory.js`)

const sleeper = new Int32Array(new SharedArrayBuffer(4))
let pauses = 0
// Pauses are rare in the common path, to make progress, and frequent in the recovery path.
let isHealing = false
Object.assign(globalThis, {
  pause() {
    if (Math.random() > (isHealing ? 0.1 : 0.0005)) return
    pauses += 1
    isHealing = true
    Atomics.wait(sleeper, 0, 0, Math.random() * (Math.random() < 0.2 ? 12 : 3))
  },
})

const limiter = createLimiter(parseRule('10000000/400d fixed-window'), {
  store: attachSharedMemory(handle),
})
const admitted = new Int32Array(keys)
const endMs = performance.now() + ms
while (performance.now() < endMs) {
  const key = Math.floor(Math.random() * keys)
  if (limiter.allow(`key ${key}`)) admitted[key] += 1
  isHealing = false
}
parentPort?.postMessage({ admitted, pauses })
