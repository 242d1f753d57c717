// @ts-check
// Measures how many bytes of Redis's memory a key takes, for one contestant. Prints the result.
import { Redis } from 'ioredis'
import { contestants } from './contestants.mjs'

const KEYS = 100_000
const [name, port] = process.argv.slice(2)
const client = new Redis(Number(port), '127.0.0.1')
await client.flushall()
const allow = await contestants[name].make(client, { limit: 100, perMs: 3_600_000 })
await allow('warm up')
const before = await usedBytes()
for (let i = 0; i < KEYS; i += 500) {
  await Promise.all(Array.from({ length: 500 }, (_, j) => allow(`user:${100_000 + i + j}`)))
}
console.log(JSON.stringify({ bytes: ((await usedBytes()) - before) / KEYS }))
client.disconnect()

async function usedBytes() {
  return Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1])
}
