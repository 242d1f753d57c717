import { SluiceError, shown } from '../core/errors.ts'
import { sharedMap } from '../core/shared-map.ts'
import { anyKey } from '../core/usable-key.ts'
import type { AsyncStore, Store } from '../stores/store.ts'
import { type Count, checkDropIn, createCounter, type DropInOptions } from './counter/counter.ts'

export type { DropInOptions } from './counter/counter.ts'

/** The result that express-rate-limit expects. */
interface ClientInfo {
  readonly totalHits: number
  readonly resetTime: Date
}

/** ExpressRateLimitStore is the `Store` of express-rate-limit 6 to 8. */
export interface ExpressRateLimitStore {
  /** The prefix of this middleware's keys, so that several can share a store. */
  readonly prefix: string
  /** Whether no other process counts the same keys. */
  readonly localKeys: boolean
  /** Called by express-rate-limit with its options. */
  init(options: { readonly windowMs: number }): void
  /** Returns the count of the key; undefined if it has none. */
  get(key: string): Promise<ClientInfo | undefined>
  /** Counts a request of the key. */
  increment(key: string): Promise<ClientInfo>
  /** Decrements the count of the key. */
  decrement(key: string): Promise<void>
  /** Resets the key. */
  resetKey(key: string): Promise<void>
  /** Resets every key. */
  resetAll(): Promise<void>
}

/** ExpressRateLimitOptions are the options of `sluiceStore`. */
export interface ExpressRateLimitOptions extends DropInOptions {
  /** Restarts a client's window at each request, like the option of rate-limit-redis. */
  readonly resetExpiryOnChange?: boolean
}

/** Numbers of stores, by which express-rate-limit distinguishes them. */
const numbers = sharedMap<Store | AsyncStore, number>('store numbers')

/**
 * sluiceStore keeps the counts of express-rate-limit in any store of Sluice:
 * `rateLimit({ windowMs, limit, store: sluiceStore({ store: redisStore(client) }) })`.
 *
 * Each `rateLimit()` needs its own instance, with its own `name` if they share a store. With
 * `onStoreFailure: 'closed'` its promises reject while the store is down, and `passOnStoreError`
 * decides. Any result of a `keyGenerator` is counted.
 */
export function sluiceStore(options: ExpressRateLimitOptions = {}): ExpressRateLimitStore {
  const { resetExpiryOnChange = false, ...checked } = checkDropIn('sluiceStore', options, [
    'resetExpiryOnChange',
  ])
  if (typeof resetExpiryOnChange !== 'boolean') {
    const got = shown(resetExpiryOnChange)
    throw new SluiceError(
      'SLUICE_OPTION',
      `sluiceStore: resetExpiryOnChange must be true or false, got ${got}.`,
    )
  }
  const { name = 'express-rate-limit' } = checked
  // With a limit of 0 every request is beyond the limit.
  const counter = createCounter(checked, name, resetExpiryOnChange ? 'restart' : 'nothing')
  let windowMs: number | undefined
  let refused: unknown

  function ready(): number {
    if (refused !== undefined) throw refused
    if (windowMs !== undefined) return windowMs
    throw new SluiceError(
      'SLUICE_OPTION',
      'sluiceStore: pass it to rateLimit({ store }) first, which says how long a window is.',
    )
  }

  const resetKey = async (key: string) => counter.reset(anyKey(key), ready())

  return {
    prefix: `${name} ${numberOf(checked.store)} `,
    localKeys: options.store === undefined,
    init(theirs) {
      try {
        counter.prepare('sluiceStore: windowMs', theirs.windowMs)
        windowMs = theirs.windowMs
        refused = undefined
      } catch (error) {
        refused = error
        throw error
      }
    },
    async get(key) {
      const count = await counter.look(anyKey(key), ready(), 0)
      return count.resetMs > 0 ? infoOf(count) : undefined
    },
    increment: async (key) => infoOf(await counter.count(anyKey(key), ready(), 0)),
    decrement: async (key) => counter.uncount(anyKey(key), ready()),
    // `rateLimit()` only logs errors of `init`. It reads this next, so throw again here.
    get resetKey() {
      if (refused !== undefined) throw refused
      return resetKey
    },
    resetAll: async () => counter.clear(ready()),
  }
}

function numberOf(store: Store | AsyncStore): number {
  const known = numbers.get(store)
  if (known !== undefined) return known
  const number = Math.floor(Math.random() * 2 ** 48)
  numbers.set(store, number)
  return number
}

function infoOf({ hits, resetMs }: Count): ClientInfo {
  return { totalHits: hits, resetTime: new Date(Date.now() + Math.ceil(resetMs)) }
}
