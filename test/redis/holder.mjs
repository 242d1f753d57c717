// @ts-check
// A process that holds units until it is killed, with the built library, as a user would run it. It
// keeps
// a separate record of its holds in Redis, which never claims more units or a longer time.
import { Redis } from 'ioredis'
import { concurrency, createLimiter } from 'sluice'
import { redisStore } from 'sluice/redis'

/**
 * @type {{
 *   port: number, name: string, limit: number, holdMs: number, units: number,
 *   broken?: 'held too long' | 'counted by itself'
 * }}
 */
const job = JSON.parse(process.argv[2])
const client = new Redis(job.port, '127.0.0.1')
const { name, limit, holdMs } = job
const rule = concurrency({ limit, hold: job.broken === 'held too long' ? 10 * holdMs : holdMs })
/** A process that counts by itself has its own rows. */
const own = job.broken === 'counted by itself' ? `${name} ${process.pid}` : name
const limiter = createLimiter(rule, { store: redisStore(client), name: own, timeoutMs: 5_000 })

const records = `records:${name}`
/**
 * Writes a record, and updates the most units that all records claim at an instant of Redis's
 * clock.
 */
const BEGIN = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
local held = 0
for _, record in ipairs(redis.call('HVALS', KEYS[1])) do
  local ends, units = string.match(record, '^(.-) (%d+)$')
  if tonumber(ends) > now then held = held + units end
end
local most = tonumber(redis.call('GET', KEYS[2]) or 0)
if held > most then redis.call('SET', KEYS[2], held) end`

async function nowMs() {
  const [seconds, micros] = await client.time()
  return Number(seconds) * 1_000 + Number(micros) / 1_000
}

const pause = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function hold(/** @type {string} */ id) {
  for (;;) {
    const units = 1 + Math.floor(Math.random() * job.units)
    // Read the time first, so that the hold lasts at least until then.
    const endsMs = (await nowMs()) + holdMs
    const permit = await limiter.tryAcquire('key', units)
    if (!permit.allowed || permit.decision.source !== 'store') {
      await client.incr(`refused:${name}`)
      await pause(Math.random() * 5)
      continue
    }
    await client.eval(BEGIN, 2, records, `most:${name}`, id, `${endsMs} ${units}`)
    await pause(Math.random() * 10)
    await client.hdel(records, id)
    await permit.release()
  }
}

process.send?.('ready')
await Promise.all(Array.from({ length: 4 }, (_, i) => hold(`${process.pid} ${i}`)))
