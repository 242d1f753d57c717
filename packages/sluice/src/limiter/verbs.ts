import type { Clock } from '../core/clock.ts'
import type { Decision } from '../core/decision.ts'
import type { Duration } from '../core/duration.ts'
import type { AsyncStats, AsyncStore, Store, TableStats } from '../stores/store.ts'
import type { CostByRule } from './key-types.ts'
import type { PenaltyOptions } from './penalty.ts'
import type { AsyncPermit, NoPermit, Permit } from './permit.ts'

/** LimiterOptions are those of a limiter on a store that answers at once. */
export interface LimiterOptions<Key = string, Cost = number> {
  /** Where states live. Default: a `memoryStore()` of its own. */
  readonly store?: Store
  /**
   * Tells the limiters on one store apart: a second one of the same name throws `SLUICE_STORE_NAME`.
   * Default `'default'`.
   */
  readonly name?: string
  /**
   * Lets limiters of one name on one store count together. All of them must say so, and have rules of
   * the same names and algorithms. Default false.
   */
  readonly share?: boolean
  /** For the default store; with a store of your own, give the clock to that. */
  readonly clock?: Clock
  /**
   * Called with every decision of `allow`, `check`, `checkMany`, `wait`, `tryAcquire` and `acquire`. What
   * it throws reaches the caller of the verb.
   */
  onDecision?(decision: Decision, key: Key, cost: Cost): void
  /** Blocks a key that is refused too often, longer each time. Default: none. */
  readonly penalty?: PenaltyOptions
}

/** FailureOptions say what happens while a store fails, or is too slow. */
export interface FailureOptions {
  /** The longest a decision waits for the store, in milliseconds. Default 50. */
  readonly timeoutMs?: number
  /**
   * What decides instead: `'local'` (default) the same rules in this process's memory, `'open'`
   * admits everything, `'closed'` refuses everything.
   */
  readonly onStoreFailure?: 'local' | 'open' | 'closed'
  /** How many nodes share the rules out among them when each has to decide alone. Default 1. */
  readonly fleetSize?: number
  /** Called when the store has failed so often that it is asked no more, but for a probe. */
  readonly onDegraded?: (error: Error) => void
  /** Called when a probe has succeeded, and the store decides again. */
  readonly onRecovered?: () => void
}

/**
 * AnyLimiterOptions are those of a limiter on a store of which only the running program knows whether it
 * answers later. What concerns a failing store has no effect on one in this process.
 */
export interface AnyLimiterOptions<Key = string, Cost = number>
  extends Omit<LimiterOptions<Key, Cost>, 'store' | 'clock'>,
    FailureOptions {
  /** Where states live. */
  readonly store: Store | AsyncStore
}

/** AsyncLimiterOptions are those of a limiter on a store that answers later. */
export interface AsyncLimiterOptions<Key = string, Cost = number>
  extends AnyLimiterOptions<Key, Cost> {
  /** Where states live, such as a `redisStore(client)`. */
  readonly store: AsyncStore
}

/** CallOptions go with a single call. */
export interface CallOptions<Tier extends string = string> {
  /**
   * The key's tier where it is known from elsewhere; only with a policy. Default, also for `null`: what
   * the policy says.
   */
  readonly tier?: Tier | null
}

/** WaitOptions are those of `wait`, `acquire` and `run`. */
export interface WaitOptions<Tier extends string = string> extends CallOptions<Tier> {
  /**
   * Gives up: the promise rejects with the signal's reason. While a store that answers later decides,
   * what it is about to spend stays spent.
   */
  readonly signal?: AbortSignal
  /** Rejects at once when the known wait is longer. Default 30,000; `'30s'` does as well. */
  readonly maxWaitMs?: Duration
  /** Calls that may be in line for this key, this one not counted. Default 1,000. */
  readonly maxWaiting?: number
  /**
   * A higher one goes first: a whole number from -1,000 to 1,000, default 0. Calls of the same
   * priority go in the order in which they came. At most 16 later calls go before a call.
   */
  readonly priority?: number
}

/** LimitRequest is one of the requests of `checkMany`. */
export interface LimitRequest<Key = string, Cost = number, Tier extends string = string>
  extends CallOptions<Tier> {
  /** Who asks. */
  readonly key: Key
  /** Default 1. */
  readonly cost?: Cost
}

/** Entry is a key that is not fresh, and what `peek` says of it. */
export interface Entry {
  /** The key, or the value of a field. */
  readonly key: string
  /** Where keys have fields: the field that `key` is of. */
  readonly by?: string
  /** What `peek` says of it. */
  readonly decision: Decision
}

/** PartOf is a part of a key with fields, or a key. */
export type PartOf<Key> = Key extends string ? Key : Partial<Key>

/**
 * Limiter decides for any key whether it may go ahead now. Several rules are one decision: all
 * take, or none does. A refusal changes nothing. A key is a text of 1 to 1,024 UTF-16 units, or an
 * object of such texts where the rules have `by`. A cost is a whole number up to 10^12, for all rules or in
 * an object with one for each; a cost above a rule's capacity throws, since no waiting could help.
 */
export interface Limiter<Key = string, Cost = number | CostByRule, Tier extends string = string> {
  /** Its name on the store. */
  readonly name: string
  /** Decides and spends, answering yes or no: the fast path. Not for rules that delay or hold. */
  allow(key: Key, cost?: Cost, options?: CallOptions<Tier>): boolean
  /** Decides and spends. Cost 0 spends nothing and is refused only by a block or debt. */
  check(key: Key, cost?: Cost, options?: CallOptions<Tier>): Decision
  /** What `check` would answer, spending nothing; `remaining` and `resetAfterMs` as they stand. */
  peek(key: Key, cost?: Cost, options?: CallOptions<Tier>): Decision
  /** Independent decisions in order, at one instant. Nothing is spent if any request is invalid. */
  checkMany(requests: readonly LimitRequest<Key, Cost, Tier>[]): Decision[]
  /**
   * Waits its turn among the `wait` calls for the key, first come first served, and then the delay of
   * a leaky bucket: resolves only when admitted, with `delayMs` 0. Rejects at once with
   * `SLUICE_WAIT_TOO_LONG` when the known wait is too long or the line is full; `error.decision` is
   * the refusal. Rejects when aborted or closed.
   */
  wait(key: Key, cost?: Cost, options?: WaitOptions<Tier>): Promise<Decision>
  /** How many calls wait for the key. */
  waiting(key: Key): number
  /**
   * Decides and spends as `check`, and gives a permit: what concurrency rules hold is held until the
   * permit ends, and what was spent can be settled or given back.
   */
  tryAcquire(key: Key, cost?: Cost, options?: CallOptions<Tier>): Permit<Cost> | NoPermit
  /** Waits its turn as `wait` does, for a permit. A release ends the wait of the next in line. */
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
   * Undoes a recent spend, as far as there is something to undo; never makes more than fresh. No
   * effect on leaky buckets, whose slots stay given out, and on what is held.
   */
  refund(key: Key, cost: Cost, options?: CallOptions<Tier>): void
  /** Refuses the key for a while, whatever its rules say; a later call replaces an earlier one. */
  block(key: PartOf<Key>, duration: Duration): void
  /** Lifts the block of the key. */
  unblock(key: PartOf<Key>): void
  /** Makes the key fresh and lifts its block. */
  reset(key: PartOf<Key>): void
  /** Makes every key fresh and lifts every block. */
  clear(): void
  /** The keys, or the parts of keys with fields, that are blocked or not fresh. */
  entries(): Iterable<Entry>
  /** How many of these there are. Looks at every one. */
  size(): number
  /** Counts since the store was made, and what is held. */
  stats(): LimiterStats
  /** Ends the limiter: those in line are rejected, and further calls throw `SLUICE_CLOSED`. */
  close(): void
  [Symbol.dispose](): void
}

/** LimiterStats are counts since the store was made, and what is held. */
export interface LimiterStats extends TableStats {
  /** Permits of this limiter that have not ended. */
  readonly held: number
}

/** AsyncLimiterStats are counts since the limiter was made, and what is held. */
export interface AsyncLimiterStats extends AsyncStats {
  /** Permits of this limiter that have not ended. */
  readonly held: number
}

/**
 * AsyncLimiter is a `Limiter` on a store that answers later. It has no `allow`: a promise that
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
   * because of the store: while that fails, `onStoreFailure` decides.
   */
  check(key: Key, cost?: Cost, options?: CallOptions<Tier>): Promise<Decision>
  /** What `check` would answer, spending nothing. */
  peek(key: Key, cost?: Cost, options?: CallOptions<Tier>): Promise<Decision>
  /**
   * Independent decisions in order, in as few trips as can be. Nothing is spent if any request is
   * invalid.
   */
  checkMany(requests: readonly LimitRequest<Key, Cost, Tier>[]): Promise<Decision[]>
  /**
   * Waits its turn among the `wait` calls for the key in this process, as on a `Limiter`: resolves only
   * when admitted, and rejects at once with `SLUICE_WAIT_TOO_LONG` when the known wait is too long or the
   * line is full.
   */
  wait(key: Key, cost?: Cost, options?: WaitOptions<Tier>): Promise<Decision>
  /** How many calls of this process wait for the key. */
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
  /** Units that another process releases are found within 100 ms. */
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
   * Undoes a recent spend, as far as there is something to undo. No effect on leaky buckets and on what
   * is held.
   */
  refund(key: Key, cost: Cost, options?: CallOptions<Tier>): Promise<void>
  /**
   * Refuses the key for a while, whatever its rules say; a later call replaces an earlier one. Rejects
   * with `SLUICE_STORE_UNAVAILABLE` if the store cannot be reached, as do the five verbs that follow.
   */
  block(key: PartOf<Key>, duration: Duration): Promise<void>
  /** Lifts the block of the key. */
  unblock(key: PartOf<Key>): Promise<void>
  /** Gives the key its whole capacity back and lifts its block. */
  reset(key: PartOf<Key>): Promise<void>
  /** Does so for every key. */
  clear(): Promise<void>
  /** The keys, or the parts of keys with fields, that have used units or are blocked. */
  entries(): AsyncIterable<Entry>
  /** How many of these there are. Looks at every one. */
  size(): Promise<number>
  /** Counts since the limiter was made, and what is held. */
  stats(): AsyncLimiterStats
  /**
   * Ends the limiter: those in line are rejected, leases are given back, its name is free, and further
   * calls reject with `SLUICE_CLOSED`.
   */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** RunOptions are those of `run`: of waiting, and the cost. */
export interface RunOptions<Cost, Tier extends string = string> extends WaitOptions<Tier> {
  /** Default 1. */
  readonly cost?: Cost
}

/**
 * AnyLimiter is a limiter on a store of which only the running program knows whether it answers later,
 * such as `url ? redisStore(client) : memoryStore()`. Await what its verbs give, and loop over `entries()`
 * with `for await`: both work on both. There is no `allow`, and no `then` to call.
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
