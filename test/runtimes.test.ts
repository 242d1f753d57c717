import { afterAll, beforeAll, describe, it } from 'vitest'
import { checks } from '../scripts/runtime-checks.mjs'
import { runtimes, startOn } from '../scripts/runtimes.mjs'
import { useRedis } from './redis/fixture.ts'
import { type HttpBridge, startHttpBridge } from './redis/http-bridge.ts'

/**
 * `npm run test:runtimes` tries all. Else only runtimes that no other test uses, with shorter
 * streams.
 */
const all = process.env.SLUICE_RUNTIMES === 'all'
const steps = all ? 2_000 : 50
const tried = all ? runtimes : runtimes.filter(({ name }) => !name.startsWith('Node'))

const redis = useRedis()
let bridge: HttpBridge
beforeAll(async () => {
  bridge = await startHttpBridge(redis.client)
})
afterAll(() => bridge.close())

describe.each(tried)('on $name', (runtime) => {
  let program: Awaited<ReturnType<typeof startOn>>
  beforeAll(async () => {
    program = await startOn(runtime)
  }, 300_000)
  afterAll(() => program?.stop())

  for (const { name, run } of checks.filter(({ onServers }) => !(onServers && runtime.isWorker))) {
    it(
      `${name} works`,
      () => run(program.url, { steps, bridge, redisPort: redis.server.port }),
      600_000,
    )
  }
})
