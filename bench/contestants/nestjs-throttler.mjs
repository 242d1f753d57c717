import { ThrottlerStorageService } from '@nestjs/throttler'

/**
 * make follows "Configuration" and "Storages" in the README: the built-in storage with `ttl`,
 * `limit` and `blockDuration` at its default, which is `ttl`. It cannot be bounded.
 * @type {import('../lib/adapter.mjs').Make}
 */
export function make(limit, perMs) {
  const storage = new ThrottlerStorageService()
  return {
    ask: (key) => storage.increment(key, perMs, limit, perMs, 'default'),
    passes: ({ isBlocked }) => !isBlocked,
  }
}
