import { Redis } from 'ioredis'
import { afterAll, beforeAll } from 'vitest'
import { type RedisServer, startRedis } from './server.ts'

/** useRedis starts a server for the tests of a file, and connects a client. */
export function useRedis(): { readonly server: RedisServer; readonly client: Redis } {
  const used = {} as { server: RedisServer; client: Redis }
  beforeAll(async () => {
    used.server = await startRedis()
    used.client = new Redis(used.server.port, '127.0.0.1')
  }, 120_000)
  afterAll(async () => {
    used.client.disconnect()
    await used.server.stop()
  })
  return used
}
