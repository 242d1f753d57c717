import { afterAll, beforeAll, describe, it } from 'vitest'
import { checks } from '../scripts/runtime-checks.mjs'
import { runtimes, startOn } from '../scripts/runtimes.mjs'
import { type RedisServer, startRedis } from './redis/server.ts'

/** `npm run test:runtimes` tries all; else those that no other test runs on, and shorter streams. */
const all = process.env.SLUICE_RUNTIMES === 'all'
const steps = all ? 2_000 : 50
const tried = all ? runtimes : runtimes.filter(({ name }) => !name.startsWith('Node'))

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
}, 120_000)
afterAll(() => redis.stop())

describe.each(tried)('on $name', (runtime) => {
  let program: Awaited<ReturnType<typeof startOn>>
  beforeAll(async () => {
    program = await startOn(runtime)
  }, 300_000)
  afterAll(() => program?.stop())

  for (const { name, run } of checks.filter(({ onServers }) => !(onServers && runtime.isWorker))) {
    it(`${name} works`, () => run(program.url, { steps, redisPort: redis.port }), 600_000)
  }
})
