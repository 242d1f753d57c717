import { compositeKey } from '../core/key.ts'
import { anyKey } from '../core/usable-key.ts'
import {
  type Count,
  type Counter,
  checkDropIn,
  createCounter,
  type DropInOptions,
} from './counter/counter.ts'

export type { DropInOptions } from './counter/counter.ts'

/** Settings is what @fastify/rate-limit passes to a store for itself or for a route. */
interface Settings {
  readonly continueExceeding?: boolean
  readonly exponentialBackoff?: boolean
  /** May be a function of the request. */
  readonly timeWindow?: unknown
  readonly routeInfo?: { readonly method?: string | readonly string[]; readonly url?: string }
}

type Callback = (error: Error | null, result?: { current: number; ttl: number }) => void

/** FastifyRateLimitStore is the store of @fastify/rate-limit 10 and 11. */
export interface FastifyRateLimitStore {
  /** Counts a request of the key, and passes the count to the callback. */
  incr(key: string | number, callback: Callback, timeWindow: number, max: number): void
  /** Passes the count to the callback without counting a request. */
  read(key: string | number, callback: Callback, timeWindow: number, max: number): void
  /** Creates the store of a route with its own options. */
  child(route: object): FastifyRateLimitStore
}

/**
 * sluiceStore keeps the counts of @fastify/rate-limit in any store of Sluice:
 * `app.register(rateLimit, { max, timeWindow, store: sluiceStore({ store: redisStore(client) }) })`.
 *
 * A route with its own limits counts separately. With `onStoreFailure: 'closed'` requests fail while
 * the store is down, and `skipOnError` decides. Any result of a `keyGenerator` is counted.
 */
export function sluiceStore(
  options: DropInOptions = {},
): new (
  settings: object,
) => FastifyRateLimitStore {
  const checked = checkDropIn('sluiceStore', options)
  const { name = 'fastify-rate-limit' } = checked
  const counters = {
    nothing: createCounter(checked, name, 'nothing'),
    restart: createCounter(checked, `${name} restart`, 'restart'),
    double: createCounter(checked, `${name} double`, 'double'),
  }
  let children = 0

  function storeOf(settings: Settings, route: string): FastifyRateLimitStore {
    const { continueExceeding, exponentialBackoff, timeWindow } = settings
    const counter =
      counters[continueExceeding ? 'restart' : exponentialBackoff ? 'double' : 'nothing']
    if (typeof timeWindow === 'number') counter.prepare('sluiceStore: timeWindow', timeWindow)
    const keyOf = (key: unknown) => anyKey(compositeKey(route, anyKey(key)))
    return {
      incr: (key, callback, timeWindow, max) =>
        answer(callback, () => counter.count(keyOf(key), timeWindow, max)),
      read: (key, callback, timeWindow, max) =>
        answer(callback, () => counter.look(keyOf(key), timeWindow, max)),
      child(route: Settings) {
        const { method, url } = route.routeInfo ?? {}
        children += 1
        return storeOf(route, url === undefined ? `#${children}` : `${method} ${url}`)
      },
    }
  }

  // The plugin calls it with `new`.
  function OwnStore(this: object, settings: Settings): void {
    Object.assign(this, storeOf(settings, ''))
  }
  return OwnStore as unknown as new (
    settings: object,
  ) => FastifyRateLimitStore
}

function answer(callback: Callback, ask: () => ReturnType<Counter['count']>): void {
  const tell = ({ hits, resetMs }: Count) =>
    callback(null, { current: hits, ttl: Math.ceil(resetMs) })
  try {
    const count = ask()
    if (count instanceof Promise) count.then(tell, callback)
    else tell(count)
  } catch (error) {
    callback(error as Error)
  }
}
