// @ts-check
// Runs one contestant on one workload in its own process. Prints the result as JSON.
import { Redis } from 'ioredis'
import { contestants } from './contestants.mjs'
import { workloads } from './workloads.mjs'

const [name, workload, port, ms] = process.argv.slice(2)
const { inFlight, keys, limit } = workloads[workload]
const client = new Redis(Number(port), '127.0.0.1')
const admin = new Redis(Number(port), '127.0.0.1')
await admin.flushall()

let trips = 0
const sendCommand = client.sendCommand.bind(client)
client.sendCommand = (/** @type {any} */ command, /** @type {any} */ ...rest) => {
  trips += 1
  return sendCommand(command, ...rest)
}

const allow = await contestants[name].make(client, { limit, perMs: 3_600_000 })
let seed = 12_345
let fresh = 0
const random = () => {
  seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff
  return seed / 0x80000000
}
/** In an attack one call in twenty has a new key. */
const keyOf =
  workload === 'attack'
    ? () => (random() < 0.05 ? `new:${fresh++}` : `user:${1e6 + Math.floor(random() * keys)}`)
    : () => `user:${1e5 + Math.floor(random() * keys)}`

if (workload === 'attack') {
  for (let i = 0; i < keys * (limit + 1); i += 500) {
    await Promise.all(
      Array.from({ length: 500 }, (_, j) => allow(`user:${1e6 + ((i + j) % keys)}`)),
    )
  }
}
await run(Number(ms) / 4)
const cpuBefore = await cpuUs()
const before = { trips, ownUs: ownUs(), atMs: performance.now() }
const { decisions, allowed, latencies } = await run(Number(ms))
const seconds = (performance.now() - before.atMs) / 1_000
const clientUs = (ownUs() - before.ownUs) / decisions
const used = trips - before.trips
const redisUs = ((await cpuUs()) - cpuBefore) / decisions
latencies.sort((a, b) => a - b)
const at = (/** @type {number} */ part) =>
  1_000 * latencies[Math.min(latencies.length - 1, Math.floor(part * latencies.length))]
console.log(
  JSON.stringify({
    perSecond: decisions / seconds,
    allowed: allowed / decisions,
    p50Us: at(0.5),
    p99Us: at(0.99),
    redisUs,
    clientUs,
    trips: used / decisions,
  }),
)
client.disconnect()
admin.disconnect()

/** @param {number} ms */
async function run(ms) {
  const untilMs = performance.now() + ms
  /** @type {number[]} */
  const latencies = []
  let decisions = 0
  let allowed = 0
  const caller = async () => {
    while (performance.now() < untilMs) {
      const startMs = performance.now()
      if (await allow(keyOf())) allowed += 1
      decisions += 1
      if ((decisions & 15) === 0) latencies.push(performance.now() - startMs)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, caller))
  return { decisions, allowed, latencies }
}

async function cpuUs() {
  const text = await admin.info('cpu')
  const read = (/** @type {string} */ field) =>
    Number(new RegExp(`${field}:([\\d.]+)`).exec(text)?.[1])
  return (read('used_cpu_sys') + read('used_cpu_user')) * 1e6
}

function ownUs() {
  const { user, system } = process.cpuUsage()
  return user + system
}
