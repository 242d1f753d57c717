// @ts-check
// A process that asks a Cluster for a permit, and dies as soon as one row has spent.
import { Cluster } from 'ioredis'
import { createLimiter, parseRule } from 'sluice'
import { redisStore } from 'sluice/redis'

/** @type {{ addresses: { host: string, port: number }[], prefix: string, rules: string[], key: object }} */
const job = JSON.parse(process.argv[2])
const cluster = new Cluster(job.addresses)

const client = {
  nodes: () => cluster.nodes('master'),
  async call(/** @type {string} */ command, /** @type {string[]} */ args) {
    const reply = await cluster.call(command, args)
    // A swap that was done is the spend of one row.
    if (reply === 1) process.kill(process.pid, 'SIGKILL')
    return reply
  },
}
const store = redisStore(client, { prefix: job.prefix })
const limiter = createLimiter(job.rules.map(parseRule), { store, name: 'killed', timeoutMs: 5_000 })
await limiter.tryAcquire(job.key)
process.send?.('lived')
