// Longer than the other files: the public types of a limiter read best on one page.

import type { Clock } from '../core/clock.ts'
import type { Decision } from '../core/decision.ts'
import type { Duration } from '../core/duration.ts'
import type { AsyncStats, AsyncStore, Store, TableStats } from '../stores/store.ts'
import type { CostByRule } from './key-types.ts'
import type { PenaltyOptions } from './penalty.ts'
import type { AsyncPermit, NoPermit, Permit } from './permit.ts'

/** LimiterOptions are the options of a limiter on a synchronous store. */
export interface LimiterOptions<Key = string, Cost = number> {
  /** The store of the states. Default: a new `memoryStore()`. */
  readonly store?: Store
  /**
   * Separates limiters on one store. A second one of the same name throws `SLUICE_STORE_NAME`.
   * Default `'default'`.
   */
  readonly name?: string
  /**
   * Lets limiters of one name on one store count together. All of them must set it, and have rules
   * of the same names and algorithms. Default false.
   */
  readonly share?: boolean
  /** The clock of the default store. If you pass a store, pass the clock to that store. */
  readonly clock?: Clock
  /**
   * Called with every decision of `allow`, `check`, `checkMany`, `wait`, `tryAcquire` and
   * `acquire`. An error that it throws reaches the caller of the verb.
   */
  onDecision?(decision: Decision, key: Key, cost: Cost): void
  /** Blocks a key that is refused too often, for longer each time. Default: none. */
  readonly penalty?: PenaltyOptions
}

/** FailureOptions define what happens while a store fails or is too slow. */
export interface FailureOptions {
  /** The longest a decision waits for the store, in milliseconds. Default 50. */
  readonly timeoutMs?: number
  /**
   * What decides instead: `'local'` (default) enforces the same rules in this process's memory,
   * `'open'` admits everything, `'closed'` refuses everything.
   */
  readonly onStoreFailure?: 'local' | 'open' | 'closed'
  /** How many nodes split the rules while each decides alone. Default 1. */
  readonly fleetSize?: number
  /** Called when the circuit breaker opens: from then on only probes reach the store. */
  readonly onDegraded?: (error: Error) => void
  /** Called when a probe has succeeded and the store decides again. */
  readonly onRecovered?: () => void
}

/**
 * AnyLimiterOptions are the options of a limiter on a store that may be synchronous or asynchronous.
 * Failure options have no effect on a synchronous store.
 */
export interface AnyLimiterOptions<Key = string, Cost = number>
  extends Omit<LimiterOptions<Key, Cost>, 'store' | 'clock'>,
    FailureOptions {
  /** Where states live. */
  readonly store: Store | AsyncStore
}

/** AsyncLimiterOptions are the options of a limiter on an asynchronous store. */
export interface AsyncLimiterOptions<Key = string, Cost = number>
  extends AnyLimiterOptions<Key, Cost> {
  /** The store of the states, such as a `redisStore(client)`. */
  readonly store: AsyncStore
}

/** CallOptions are the options of a single call. */
export interface CallOptions<Tier extends string = string> {
  /**
   * The key's tier, if the caller knows it. Only with a policy. Default, also for `null`: the tier
   * by the policy.
   */
  readonly tier?: Tier | null
}

/** WaitOptions are the options of `wait`, `acquire` and `run`. */
export interface WaitOptions<Tier extends string = string> extends CallOptions<Tier> {
  /**
   * Aborts the wait: the promise rejects with the signal's reason. Units that an asynchronous store
   * is spending at that moment stay spent.
   */
  readonly signal?: AbortSignal
  /**
   * Rejects at once if the known wait is longer. Default 30,000. Durations such as `'30s'` work,
   * too.
   */
  readonly maxWaitMs?: Duration
  /** The most other calls that may wait for this key. Default 1,000. */
  readonly maxWaiting?: number
  /**
   * Higher priorities go first: a whole number from -1,000 to 1,000, default 0. Calls of the same
   * priority go in order of arrival. At most 16 later calls overtake a call.
   */
  readonly priority?: number
}

/** LimitRequest is one of the requests of `checkMany`. */
export interface LimitRequest<Key = string, Cost = number, Tier extends string = string>
  extends CallOptions<Tier> {
  /** The key to decide for. */
  readonly key: Key
  /** Default 1. */
  readonly cost?: Cost
}

/** Entry is a key that is in use or blocked, and its decision by `peek`. */
export interface Entry {
  /** The key, or the value of a field. */
  readonly key: string
  /** For keys with fields: the field of `key`. */
  readonly by?: string
  /** The result of `peek` for it. */
  readonly decision: Decision
}

/** PartOf is some fields of a key with fields, or a string key. */
export type PartOf<Key> = Key extends string ? Key : Partial<Key>

/**
 * Limiter decides whether a key may go ahead now. Several rules make one decision: all of them
 * spend, or none does. A refusal changes nothing. A key is a string of 1 to 1,024 UTF-16 units, or
 * an object of such strings if the rules have `by`. A cost is a whole number up to 10^12 for all
 * rules, or an object with one per rule. A cost above a rule's capacity throws, since no waiting
 * could help.
 */
export interface Limiter<Key = string, Cost = number | CostByRule, Tier extends string = string> {
  /** Its name on the store. */
  readonly name: string
  /**
   * Decides and spends, and returns whether it admits: the fast path. Not for rules that delay or
   * hold.
   */
  allow(key: Key, cost?: Cost, options?: CallOptions<Tier>): boolean
  /** Decides and spends. Cost 0 spends nothing and is refused only by a block or debt. */
  check(key: Key, cost?: Cost, options?: CallOptions<Tier>): Decision
  /**
   * Returns what `check` would, and spends nothing; `remaining` and `resetAfterMs` are the present
   * ones.
   */
  peek(key: Key, cost?: Cost, options?: CallOptions<Tier>): Decision
  /**
   * Makes independent decisions in order, at one instant. Spends nothing if any request is invalid.
   */
  checkMany(requests: readonly LimitRequest<Key, Cost, Tier>[]): Decision[]
  /**
   * Waits in the queue of the key, first come, first served, and then the delay of
   * a leaky bucket. Resolves only when admitted, with `delayMs` 0. Rejects at once with
   * `SLUICE_WAIT_TOO_LONG` if the known wait is too long or the queue is full; `error.decision` is
   * the refusal. Rejects when aborted or closed.
   */
  wait(key: Key, cost?: Cost, options?: WaitOptions<Tier>): Promise<Decision>
  /** Returns how many calls wait for the key. */
  waiting(key: Key): number
  /**
   * Decides and spends as `check`, and gives a permit: what concurrency rules hold is held until the
   * permit ends, and what was spent can be settled or given back.
   */
  tryAcquire(key: Key, cost?: Cost, options?: CallOptions<Tier>): Permit<Cost> | NoPermit
  /** Waits as `wait` does, for a permit. A release admits the next call in the queue. */
  acquire(key: Key, cost?: Cost, options?: WaitOptions<Tier>): Promise<Permit<Cost>>
  /** Acquires, calls `work`, and releases when it has ended. */
  run<T>(
    key: Key,
    work: (permit: Permit<Cost>) => T | PromiseLike<T>,
    options?: RunOptions<Cost, Tier>,
  ): Promise<T>
  /** Debits `cost` of rates even if it does not fit; the debt has to refill first. */
  charge(key: Key, cost: Cost, options?: CallOptions<Tier>): void
  /**
   * Undoes a recent spend, as far as it still counts. Never exceeds a full key. No
   * effect on leaky buckets, whose slots stay assigned, and on held units.
   */
  refund(key: Key, cost: Cost, options?: CallOptions<Tier>): void
  /**
   * Refuses the key for a duration, even if its rules admit. A later call replaces an earlier one.
   */
  block(key: PartOf<Key>, duration: Duration): void
  /** Lifts the block of the key. */
  unblock(key: PartOf<Key>): void
  /** Makes the key fresh and lifts its block. */
  reset(key: PartOf<Key>): void
  /** Makes every key fresh and lifts every block. */
  clear(): void
  /** Lists the keys, or the parts of keys with fields, that have used units or are blocked. */
  entries(): Iterable<Entry>
  /** How many of these there are. Looks at every one. */
  size(): number
  /** Counts since the store was made, and what is held. */
  stats(): LimiterStats
  /** Closes the limiter: waiting calls reject, and further calls throw `SLUICE_CLOSED`. */
  close(): void
  [Symbol.dispose](): void
}

/** LimiterStats counts events since the store was created, and open permits. */
export interface LimiterStats extends TableStats {
  /** Permits of this limiter that have not ended. */
  readonly held: number
}

/** AsyncLimiterStats counts events since the limiter was created, and open permits. */
export interface AsyncLimiterStats extends AsyncStats {
  /** Permits of this limiter that have not ended. */
  readonly held: number
}

/**
 * AsyncLimiter is a `Limiter` on an asynchronous store. It has no `allow`: a promise that
 * is not awaited would always be true.
 */
export interface AsyncLimiter<
  Key = string,
  Cost = number | CostByRule,
  Tier extends string = string,
> {
  /** Its name on the store. */
  readonly name: string
  /**
   * Decides and spends. Cost 0 spends nothing and is refused only by a block or debt. Never rejects
   * because of the store: while it fails, `onStoreFailure` decides.
   */
  check(key: Key, cost?: Cost, options?: CallOptions<Tier>): Promise<Decision>
  /** Returns what `check` would, and spends nothing. */
  peek(key: Key, cost?: Cost, options?: CallOptions<Tier>): Promise<Decision>
  /**
   * Makes independent decisions in order, in as few round trips as possible. Spends nothing if any
   * request is invalid.
   */
  checkMany(requests: readonly LimitRequest<Key, Cost, Tier>[]): Promise<Decision[]>
  /**
   * Waits in this process's queue of the key, as on a `Limiter`. Resolves only when admitted, and
   * rejects at once with `SLUICE_WAIT_TOO_LONG` if the known wait is too long or the queue is full.
   */
  wait(key: Key, cost?: Cost, options?: WaitOptions<Tier>): Promise<Decision>
  /** Returns how many calls of this process wait for the key. */
  waiting(key: Key): number
  /**
   * Decides and spends as `check`, and gives a permit: what concurrency rules hold is held until the
   * permit ends, and what was spent can be settled or given back.
   */
  tryAcquire(
    key: Key,
    cost?: Cost,
    options?: CallOptions<Tier>,
  ): Promise<AsyncPermit<Cost> | NoPermit>
  /** Waits as `wait` does, for a permit. Finds units that another process releases within 100 ms. */
  acquire(key: Key, cost?: Cost, options?: WaitOptions<Tier>): Promise<AsyncPermit<Cost>>
  /** Acquires, calls `work`, and releases when it has ended. */
  run<T>(
    key: Key,
    work: (permit: AsyncPermit<Cost>) => T | PromiseLike<T>,
    options?: RunOptions<Cost, Tier>,
  ): Promise<T>
  /** Debits `cost` of rates even if it does not fit; the debt has to refill first. */
  charge(key: Key, cost: Cost, options?: CallOptions<Tier>): Promise<void>
  /**
   * Undoes a recent spend, as far as it still counts. No effect on leaky buckets and on
   * held units.
   */
  refund(key: Key, cost: Cost, options?: CallOptions<Tier>): Promise<void>
  /**
   * Refuses the key for a duration, even if its rules admit. A later call replaces an earlier one.
   * Rejects with `SLUICE_STORE_UNAVAILABLE` if the store cannot be reached, as do the five verbs
   * that follow.
   */
  block(key: PartOf<Key>, duration: Duration): Promise<void>
  /** Lifts the block of the key. */
  unblock(key: PartOf<Key>): Promise<void>
  /** Gives the key its whole capacity back and lifts its block. */
  reset(key: PartOf<Key>): Promise<void>
  /** Makes every key full and lifts every block. */
  clear(): Promise<void>
  /** The keys, or the parts of keys with fields, that have used units or are blocked. */
  entries(): AsyncIterable<Entry>
  /** How many of these there are. Looks at every one. */
  size(): Promise<number>
  /** Counts since the limiter was made, and what is held. */
  stats(): AsyncLimiterStats
  /**
   * Closes the limiter: waiting calls reject, leased units are returned, the name becomes free, and
   * further calls reject with `SLUICE_CLOSED`.
   */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** RunOptions are the options of `run`: those of waiting, and the cost. */
export interface RunOptions<Cost, Tier extends string = string> extends WaitOptions<Tier> {
  /** Default 1. */
  readonly cost?: Cost
}

/**
 * AnyLimiter is a limiter on a store that may be synchronous or asynchronous, such as `url ?
 * redisStore(client) : memoryStore()`. Await the results of its verbs, and loop over `entries()`
 * with `for await`: both work on both kinds. It has no `allow`.
 */
export type AnyLimiter<Key = string, Cost = number | CostByRule, Tier extends string = string> = (
  | Limiter<Key, Cost, Tier>
  | AsyncLimiter<Key, Cost, Tier>
) & {
  /** Acquires, calls `work`, and releases when it has ended. */
  run<T>(
    key: Key,
    work: (permit: Permit<Cost> | AsyncPermit<Cost>) => T | PromiseLike<T>,
    options?: RunOptions<Cost, Tier>,
  ): Promise<T>
}
