import { type Clock, systemClock } from '../../core/clock.ts'
import { checkOptions } from '../../core/options.ts'
import type { DenyCacheOptions } from '../remote/deny-cache.ts'
import type { LeaseOptions } from '../remote/leases.ts'
import { openRemote, type RemoteOptions, remoteOptions } from '../remote/open-remote.ts'
import type { AsyncStore } from '../store.ts'
import { connectionOf, type RedisClient } from './client.ts'
import { createRedisEngine } from './redis-engine.ts'
import { CLOCK_LINE } from './script.ts'

export type { DenyCacheOptions, LeaseOptions, RedisClient }

/** RedisStoreOptions are the options of `redisStore`. */
export type RedisStoreOptions = RemoteOptions

/**
 * redisStore keeps rows in Redis or Valkey, for any number of nodes. Each decision is one atomic
 * script at one instant of Redis's own clock. It starts with Redis down and recovers by itself.
 */
export function redisStore(client: RedisClient, options: RedisStoreOptions = {}): AsyncStore {
  checkOptions('redisStore', options, remoteOptions)
  return openRedis(client, options, systemClock, CLOCK_LINE)
}

/** openRedis is `redisStore` with a replaceable Lua line that reads the time. */
export function openRedis(
  client: RedisClient,
  options: RedisStoreOptions,
  clock: Clock,
  clockLine: string,
): AsyncStore {
  const connection = connectionOf(client)
  return openRemote('redisStore', client, options, clock, ({ nameOf }) =>
    createRedisEngine(connection, nameOf(''), clockLine),
  )
}
