// Eight processes make decisions on one key as fast as they can, for two seconds:
//
//     memcached -p 11211 &
//     npm run build
//     node examples/memcached/race.mjs
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createLimiter, fixedWindow } from 'sluice'
import { memcachedStore } from './memcached-store.mjs'

const PROCESSES = 8
const MS = 2_000
const limit = 1_000_000

const store = memcachedStore({ port: Number(process.env.PORT ?? 11_211) })
const limiter = createLimiter(fixedWindow({ limit, per: '10d' }), {
  ...{ store, timeoutMs: 5_000, onStoreFailure: 'closed' },
})

if (process.send) {
  process.send(await race())
  process.exit()
}

await limiter.reset('alice')
const children = Array.from({ length: PROCESSES }, () => fork(new URL(import.meta.url)))
const results = await Promise.all(children.map(async (child) => (await once(child, 'message'))[0]))
console.table(results)
const admitted = results.reduce((sum, each) => sum + each.admitted, 0)
const { remaining } = await limiter.peek('alice')
console.log(`${admitted} were admitted, and ${limit - remaining} are missing from the limit`)
process.exit()

/** Returns how many calls one process admits, and its longest wait for a decision. */
async function race() {
  let admitted = 0
  let longestMs = 0
  const endMs = performance.now() + MS
  for (let nowMs = performance.now(); nowMs < endMs; ) {
    if ((await limiter.check('alice')).allowed) admitted += 1
    longestMs = Math.max(longestMs, performance.now() - nowMs)
    nowMs = performance.now()
  }
  return { admitted, longestMs: Math.round(longestMs), ...limiter.stats() }
}
