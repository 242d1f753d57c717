import type { Redis } from 'ioredis'
import { type ManualClock, manualClock } from 'sluice/testing'
import { openRedis, type RedisStoreOptions } from '../../packages/sluice/src/stores/redis/redis.ts'

export const TEST_CLOCK_LINE = "local now = tonumber(redis.call('GET', 'test-clock'))"

/** 2100-01-01, so that Redis never expires rows by the test's clock. Other tests cover expiry. */
export const START_US = Date.UTC(2100, 0) * 1_000

let made = 0

/** Wire intercepts the commands between a store and its client: it may count or change them. */
export type Wire = (
  send: (command: string, args: string[]) => Promise<unknown>,
  command: string,
  args: string[],
) => Promise<unknown>

/** timedStore creates a store with its own prefix, whose scripts read the time of a manual clock. */
export function timedStore(
  client: Redis,
  wire: Wire = (send, command, args) => send(command, args),
  options: RedisStoreOptions = {},
  clock: ManualClock = manualClock(START_US),
) {
  made += 1
  const send = (command: string, args: string[]) => {
    client.set('test-clock', String(clock.nowUs()))
    return client.call(command, args)
  }
  const timed = { call: (command: string, args: string[]) => wire(send, command, args) }
  const store = openRedis(timed, { prefix: `test-${made}`, ...options }, clock, TEST_CLOCK_LINE)
  return { clock, store, prefix: `test-${made}` }
}
