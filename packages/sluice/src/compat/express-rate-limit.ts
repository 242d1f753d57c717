import { SluiceError } from '../errors.ts'
import { type Count, checkDropIn, createCounter, type DropInOptions } from './counter/counter.ts'

export type { DropInOptions } from './counter/counter.ts'

/** What express-rate-limit wants to know of a client. */
interface ClientInfo {
  readonly totalHits: number
  readonly resetTime: Date
}

/** ExpressRateLimitStore is the `Store` of express-rate-limit 6 to 8. */
export interface ExpressRateLimitStore {
  readonly prefix: string
  readonly localKeys: boolean
  init(options: { readonly windowMs: number }): void
  get(key: string): Promise<ClientInfo | undefined>
  increment(key: string): Promise<ClientInfo>
  decrement(key: string): Promise<void>
  resetKey(key: string): Promise<void>
  resetAll(): Promise<void>
}

/**
 * sluiceStore keeps the counts of express-rate-limit in any store of Sluice:
 * `rateLimit({ windowMs, limit, store: sluiceStore({ store: redisStore(client) }) })`.
 *
 * Each `rateLimit()` needs one of its own, with a `name` of its own if they share a store. With
 * `onStoreFailure: 'closed'` its promises reject while the store is away, and `passOnStoreError`
 * decides.
 */
export function sluiceStore(options: DropInOptions = {}): ExpressRateLimitStore {
  const checked = checkDropIn('sluiceStore', options)
  const { name = 'express-rate-limit' } = checked
  const counter = createCounter(checked, name, 'nothing')
  let windowMs: number | undefined

  function ready(): number {
    if (windowMs !== undefined) return windowMs
    throw new SluiceError(
      'SLUICE_OPTION',
      'sluiceStore: pass it to rateLimit({ store }) first, which says how long a window is.',
    )
  }

  return {
    prefix: name,
    localKeys: options.store === undefined,
    init(theirs) {
      windowMs = theirs.windowMs
      counter.prepare(windowMs)
    },
    async get(key) {
      const count = await counter.look(key, ready(), 0)
      return count.hits > 0 ? infoOf(count) : undefined
    },
    increment: async (key) => infoOf(await counter.count(key, ready(), 0)),
    decrement: async (key) => counter.uncount(key, ready()),
    resetKey: async (key) => counter.reset(key, ready()),
    resetAll: async () => counter.clear(ready()),
  }
}

function infoOf({ hits, resetMs }: Count): ClientInfo {
  return { totalHits: hits, resetTime: new Date(Date.now() + resetMs) }
}
