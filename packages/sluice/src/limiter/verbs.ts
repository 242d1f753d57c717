import type { Clock } from '../core/clock.ts'
import type { Decision } from '../core/decision.ts'
import type { Duration } from '../core/duration.ts'
import type { AsyncStats, AsyncStore, Store, TableStats } from '../stores/store.ts'

export interface LimiterOptions {
  /** Where states live. Default: a `memoryStore()` of its own. */
  readonly store?: Store
  /** Part of a state's identity: limiters that share a store need different names. */
  readonly name?: string
  /** For the default store; with a store of your own, give the clock to that. */
  readonly clock?: Clock
  /**
   * Called with every decision of `allow`, `check`, `checkMany` and `wait`, after it was made. What
   * it throws reaches the caller of the verb.
   */
  readonly onDecision?: (decision: Decision, key: string, cost: number) => void
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

/** AsyncLimiterOptions are those of a limiter on a store that answers later. */
export interface AsyncLimiterOptions
  extends Omit<LimiterOptions, 'store' | 'clock'>,
    FailureOptions {
  readonly store: AsyncStore
}

/** CallOptions go with a single call. */
export interface CallOptions {
  /** The key's tier where it is known from elsewhere; only with a policy. */
  readonly tier?: string
}

export interface WaitOptions extends CallOptions {
  /** Gives up; the promise rejects with the signal's reason and nothing more is spent. */
  readonly signal?: AbortSignal
  /** Refused at once when the known wait is longer. Default 30,000; `'30s'` does as well. */
  readonly maxWaitMs?: Duration
  /** Calls that may be in line for this key, this one not counted. Default 1,000. */
  readonly maxWaiting?: number
}

/** LimitRequest is one of the requests of `checkMany`. */
export interface LimitRequest extends CallOptions {
  readonly key: string
  /** Default 1. */
  readonly cost?: number
}

/** Entry is a key that is not fresh, and what `peek` says of it. */
export interface Entry {
  readonly key: string
  readonly decision: Decision
}

/**
 * Limiter decides for any key whether it may go ahead now. Several rules are one decision: all
 * take, or none does. A refusal changes nothing. Keys are strings of 1 to 1,024 UTF-16 units;
 * costs are whole numbers up to 10,000,000; a cost above a rule's capacity throws, since no
 * waiting could help.
 */
export interface Limiter {
  readonly name: string
  /** Decides and spends, answering yes or no: the fast path. Not for leaky buckets. */
  allow(key: string, cost?: number, options?: CallOptions): boolean
  /** Decides and spends. Cost 0 spends nothing and is refused only by a block or debt. */
  check(key: string, cost?: number, options?: CallOptions): Decision
  /** What `check` would answer, spending nothing; `remaining` and `resetAfterMs` as they stand. */
  peek(key: string, cost?: number, options?: CallOptions): Decision
  /** Independent decisions in order, at one instant. Nothing is spent if any request is invalid. */
  checkMany(requests: readonly LimitRequest[]): Decision[]
  /**
   * Waits its turn, first come first served among the `wait` calls for the key, and the delay of a
   * leaky bucket, so `delayMs` of the answer is 0. Resolves to a refusal at once when the known wait
   * is too long.
   */
  wait(key: string, cost?: number, options?: WaitOptions): Promise<Decision>
  /** Debits `cost` even if it does not fit; the debt has to refill first. */
  charge(key: string, cost: number, options?: CallOptions): void
  /**
   * Undoes a recent spend, as far as there is something to undo; never makes more than fresh. No
   * effect on leaky buckets: their slots stay given out.
   */
  refund(key: string, cost: number, options?: CallOptions): void
  /** Refuses the key for a while, whatever its rules say; a later call replaces an earlier one. */
  block(key: string, duration: Duration): void
  unblock(key: string): void
  /** Makes the key fresh and lifts its block. */
  reset(key: string): void
  /** Makes every key fresh and lifts every block. */
  clear(): void
  /** The keys that are blocked or not fresh. */
  entries(): Iterable<Entry>
  /** How many keys are blocked or not fresh. Looks at every key. */
  size(): number
  stats(): TableStats
  /** Ends the limiter: those in line are rejected, and further calls throw `SLUICE_CLOSED`. */
  close(): void
  [Symbol.dispose](): void
}

/**
 * AsyncLimiter is a `Limiter` on a store that answers later. It has no `allow`: a promise that
 * nobody awaits would always be true.
 */
export interface AsyncLimiter {
  readonly name: string
  check(key: string, cost?: number, options?: CallOptions): Promise<Decision>
  peek(key: string, cost?: number, options?: CallOptions): Promise<Decision>
  checkMany(requests: readonly LimitRequest[]): Promise<Decision[]>
  wait(key: string, cost?: number, options?: WaitOptions): Promise<Decision>
  charge(key: string, cost: number, options?: CallOptions): Promise<void>
  refund(key: string, cost: number, options?: CallOptions): Promise<void>
  block(key: string, duration: Duration): Promise<void>
  unblock(key: string): Promise<void>
  reset(key: string): Promise<void>
  clear(): Promise<void>
  entries(): AsyncIterable<Entry>
  size(): Promise<number>
  stats(): AsyncStats
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}
