import { type Decision, failureOf } from '../../core/decision.ts'
import { reasonOf, SluiceError, shown } from '../../core/errors.ts'
import { after, type Later } from '../../core/later.ts'
import { checkOptions } from '../../core/options.ts'
import { createLimiter } from '../../limiter/limiter.ts'
import type { AsyncLimiter, FailureOptions, Limiter } from '../../limiter/verbs.ts'
import { memoryStore } from '../../stores/memory/memory.ts'
import type { AsyncStore, Store } from '../../stores/store.ts'
import { type Beyond, countedWindow, countingAlgorithm } from './counted-window.ts'

/** DropInOptions are the options of the drop-in stores for other libraries. */
export interface DropInOptions extends Omit<FailureOptions, 'fleetSize'> {
  /** Any store of Sluice. Default: a new `memoryStore()`. */
  readonly store?: Store | AsyncStore
  /** Separates counts on a shared store: use another name for separate counts. */
  readonly name?: string
}

/** Count is the requests of a key in its window, and the milliseconds until the window ends. */
export interface Count {
  readonly hits: number
  readonly resetMs: number
}

/** Counter counts requests in windows, on any store. */
export interface Counter {
  /** Throws for an unsupported window. `what` is the name of the library's option. */
  prepare(what: string, windowMs: number): void
  /** Increments the count. */
  count(key: string, windowMs: number, limit: number): Later<Count>
  look(key: string, windowMs: number, limit: number): Later<Count>
  /** Decrements the count. */
  uncount(key: string, windowMs: number): Later<void>
  reset(key: string, windowMs: number): Later<void>
  clear(windowMs: number): Later<void>
}

const LONGEST_MS = 400 * 86_400_000

/** The most limiters kept, one per window and limit. */
const MOST_LIMITERS = 1_000

/** checkDropIn checks the options and fixes the store. */
export function checkDropIn<Options extends DropInOptions>(
  where: string,
  options: Options,
  own: readonly string[] = [],
): Options & { readonly store: Store | AsyncStore } {
  checkNoStore(where, options)
  checkOptions(where, options, [
    'store',
    'name',
    'timeoutMs',
    'onStoreFailure',
    'onDegraded',
    'onRecovered',
    ...own,
  ])
  const { store = memoryStore() } = options
  if (store?.kind === 'sync' || store?.kind === 'async') return { ...options, store }
  throw new SluiceError(
    'SLUICE_OPTION',
    `${where}: store must be a store such as memoryStore() or redisStore(), got ${shown(store)}.`,
  )
}

/** Throws if the options are a store, a common mistake. */
function checkNoStore(where: string, options: object | undefined): void {
  if (typeof (options as Partial<Store> | undefined)?.open !== 'function') return
  throw new SluiceError(
    'SLUICE_OPTION',
    `${where}: options must be an object, got a store. Pass { store: … }.`,
  )
}

/** Throws unless a window lasts from one millisecond to 400 days. */
function checkWindow(what: string, windowMs: unknown): void {
  if (typeof windowMs === 'number' && windowMs >= 1 && windowMs <= LONGEST_MS) return
  throw new SluiceError(
    'SLUICE_DURATION',
    `${what} must be a number of milliseconds from 1 to ${LONGEST_MS.toLocaleString('en')} ` +
      `(400 days), got ${shown(windowMs)}. To limit nothing, leave the limit out.`,
  )
}

/**
 * createCounter creates a counter from checked options. Counters of one name and store share
 * counts.
 */
export function createCounter(options: DropInOptions, name: string, beyond: Beyond): Counter {
  const algorithm = countingAlgorithm(beyond)
  const limiters = new Map<string, Limiter | AsyncLimiter>()

  function limiterOf(windowMs: number, someLimit: number): Limiter | AsyncLimiter {
    // If excess requests have no effect, one limiter serves all limits.
    const limit = beyond === 'nothing' ? 0 : someLimit
    const id = `${limit}/${windowMs}`
    const known = limiters.get(id)
    if (known) return known
    const rule = countedWindow(algorithm, windowMs, limit)
    const limiter = createLimiter(rule, { ...options, name, share: true } as object)
    const oldest = limiters.size < MOST_LIMITERS ? undefined : limiters.keys().next().value
    if (oldest !== undefined) limiters.delete(oldest)
    limiters.set(id, limiter)
    return limiter
  }

  return {
    prepare(what, windowMs) {
      checkWindow(what, windowMs)
      limiterOf(windowMs, 0)
    },
    count: (key, windowMs, limit) =>
      after(limiterOf(windowMs, limit).check(key), (each) => countOf(each, windowMs)),
    look: (key, windowMs, limit) =>
      after(limiterOf(windowMs, limit).peek(key), (each) => countOf(each, windowMs)),
    uncount: (key, windowMs) => limiterOf(windowMs, 0).refund(key, 1),
    reset: (key, windowMs) => limiterOf(windowMs, 0).reset(key),
    clear: (windowMs) => limiterOf(windowMs, 0).clear(),
  }
}

function countOf(decision: Decision, windowMs: number): Count {
  const { allowed, source, capacity, remaining, resetAfterMs, retryAfterMs } = decision
  if (source === 'open') return { hits: 1, resetMs: windowMs }
  if (source === 'closed') throw uncounted(failureOf(decision))
  // Only a block refuses: the rule itself admits everything.
  if (!allowed) return { hits: capacity, resetMs: retryAfterMs }
  return { hits: capacity - remaining, resetMs: resetAfterMs }
}

function uncounted(cause: unknown): SluiceError {
  const why = `the store failed, so nothing was counted: ${reasonOf(cause)}`
  return new SluiceError('SLUICE_STORE_UNAVAILABLE', why, { cause })
}
