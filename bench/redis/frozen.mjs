// @ts-check
// Measures how long calls take while Redis is frozen, for one contestant. Prints the result.
import { Redis } from 'ioredis'
import { contestants } from './contestants.mjs'

const FROZEN_MS = 3_000
const [name, port, pid] = process.argv.slice(2)
const client = new Redis(Number(port), '127.0.0.1')
client.on('error', () => {})
const { make, makeSafe = make } = contestants[name]
const allow = await makeSafe(client, { limit: 10_000_000, perMs: 3_600_000 })
for (let i = 0; i < 1_000; i += 1) await allow(`user:${i}`)

process.kill(Number(pid), 'SIGSTOP')
const startMs = performance.now()
/** @type {{ atMs: number, ms: number }[]} */
const calls = []
let threw = 0
const pending = []
while (performance.now() - startMs < FROZEN_MS) {
  pending.push(timed(`user:${calls.length % 1_000}`))
  await new Promise((resolve) => setTimeout(resolve, 5))
}
process.kill(Number(pid), 'SIGCONT')
await Promise.all(pending)
const late = calls.filter(({ atMs }) => atMs > 500).map(({ ms }) => ms)
late.sort((a, b) => a - b)
console.log(
  JSON.stringify({
    longestMs: Math.max(...calls.map(({ ms }) => ms)),
    medianMs: late[late.length >> 1],
    threw,
  }),
)
client.disconnect()

/** @param {string} key */
async function timed(key) {
  const atMs = performance.now() - startMs
  try {
    await allow(key)
  } catch {
    threw += 1
  }
  calls.push({ atMs, ms: performance.now() - startMs - atMs })
}
