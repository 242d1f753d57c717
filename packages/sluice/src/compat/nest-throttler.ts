import { compositeKey } from '../core/key.ts'
import { anyKey } from '../core/usable-key.ts'
import { type Counter, checkDropIn, createCounter, type DropInOptions } from './counter/counter.ts'

export type { DropInOptions } from './counter/counter.ts'

/** The result that @nestjs/throttler expects. Times are whole seconds. */
interface ThrottlerRecord {
  readonly totalHits: number
  readonly timeToExpire: number
  readonly isBlocked: boolean
  readonly timeToBlockExpire: number
}

/** NestThrottlerStorage is the `ThrottlerStorage` of @nestjs/throttler 6. */
export interface NestThrottlerStorage {
  /** Counts a request of the key for one throttler. */
  increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    throttlerName: string,
  ): Promise<ThrottlerRecord>
}

/** The most counters kept, one per block duration. */
const MOST_COUNTERS = 100

/**
 * sluiceStorage keeps the counts of @nestjs/throttler in any store of Sluice:
 * `ThrottlerModule.forRoot({ throttlers, storage: sluiceStorage({ store: redisStore(client) }) })`.
 *
 * With `onStoreFailure: 'closed'` its promises reject while the store is down.
 */
export function sluiceStorage(options: DropInOptions = {}): NestThrottlerStorage {
  const checked = checkDropIn('sluiceStorage', options)
  const { name = 'nest-throttler' } = checked
  const counters = new Map<number, Counter>()

  function counterOf(blockMs: number): Counter {
    const known = counters.get(blockMs)
    if (known) return known
    if (counters.size >= MOST_COUNTERS) counters.clear()
    const counter =
      blockMs > 0
        ? createCounter(checked, `${name} block ${blockMs}`, blockMs)
        : createCounter(checked, name, 'nothing')
    counters.set(blockMs, counter)
    return counter
  }

  return {
    async increment(key, ttl, limit, blockDuration, throttlerName) {
      const own = anyKey(compositeKey(throttlerName, anyKey(key)))
      const { hits, resetMs } = await counterOf(blockDuration).count(own, ttl, limit)
      const isBlocked = hits > limit
      const seconds = Math.ceil(resetMs / 1_000)
      return {
        // The library's own storage counts only the first request beyond the limit.
        totalHits: Math.min(hits, Math.max(0, limit) + 1),
        timeToExpire: seconds,
        isBlocked,
        timeToBlockExpire: isBlocked ? seconds : 0,
      }
    },
  }
}
