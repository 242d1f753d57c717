// @ts-check
// One node of a fleet: a process of its own with the built library, as a user would run it.
import { Redis } from 'ioredis'
import { createLimiter, parseRule } from 'sluice'
import { redisStore } from 'sluice/redis'

/** @type {{ port: number, rule: string, keys: string[], calls: number, clockHours: number }} */
const job = JSON.parse(process.argv[2])

// The clock of this process is wrong by hours. Only Redis's clock must count.
const real = Date.now
Date.now = () => real() + job.clockHours * 3_600_000
Object.defineProperty(performance, 'timeOrigin', {
  value: performance.timeOrigin + job.clockHours * 3_600_000,
})

const client = new Redis(job.port, '127.0.0.1', { retryStrategy: () => 5 })
client.on('error', () => {})
const store = redisStore(client)
const limiter = createLimiter(parseRule(job.rule), { store, timeoutMs: 2_000 })
await limiter.peek('warm')
process.send?.('ready')
await new Promise((resolve) => process.once('message', resolve))

/** @type {Record<string, Record<string, number>>} */
const admitted = {}
let asked = 0
async function caller() {
  while (asked < job.calls) {
    const key = job.keys[asked % job.keys.length]
    asked += 1
    const { allowed, source } = await limiter.check(key)
    if (!allowed) continue
    admitted[source] ??= {}
    admitted[source][key] = (admitted[source][key] ?? 0) + 1
  }
}
await Promise.all(Array.from({ length: 20 }, caller))
process.send?.(admitted)
client.disconnect()
process.disconnect()
