import type { Clock } from '../core/clock.ts'
import type { Decision } from '../core/decision.ts'
import type { Rule } from '../core/rule.ts'
import type { Policy } from '../limiter/policy.ts'
import type { AsyncLimiter, AsyncLimiterOptions } from '../limiter/verbs.ts'

/**
 * Store keeps the state of every key, and owns atomicity and the clock. This is the contract of
 * stores that answer at once (memory, compact, shared memory).
 */
export interface Store {
  readonly kind: 'sync'
  readonly clock: Clock
  /**
   * The table of the limiter called `name`, ready for the lists of rules it starts with. A second
   * limiter of that name shares the table, and must have the same rule names and algorithms. With
   * `mayChange`, keys may get rules later that have these names and other limits.
   */
  open(name: string, ruleLists: readonly (readonly Rule[])[], mayChange?: boolean): Table
}

/** RuleSet is a list of rules made ready for one table: what is decided together. */
export interface RuleSet {
  readonly rules: readonly Rule[]
  /** The least capacity: a larger cost can never pass. */
  readonly capacity: number
  /** Whether a rule may hand out delays. */
  readonly delays: boolean
}

/**
 * Table keeps one row per key: the cells of all the limiter's rules, and how they were figured.
 * Each call is atomic. A call that refuses writes nothing.
 */
export interface Table<Set extends RuleSet = RuleSet> {
  /** The store's clock, which never goes backwards. */
  nowUs(): number
  /** Makes a list of rules ready; states are found by rule name and algorithm. */
  use(rules: readonly Rule[]): Set
  /**
   * Spends and answers true, or answers false: the fast path. Without `nowUs` it reads the clock
   * itself, which is faster.
   */
  allow(set: Set, key: string, cost: number, nowUs?: number): boolean
  /** Decides, and spends if `spend` is set and nothing refuses. `nowUs` is as in `allow`. */
  decide(set: Set, key: string, cost: number, spend: boolean, nowUs?: number): Decision
  charge(set: Set, key: string, cost: number, nowUs: number): void
  refund(set: Set, key: string, cost: number, nowUs: number): void
  block(key: string, untilUs: number, nowUs: number): void
  unblock(key: string): void
  /** Makes the key fresh and lifts its block. */
  reset(key: string, nowUs: number): void
  /** Forgets every key, block and floor. */
  clear(): void
  /** The rules that a key's row was last used with; none where it has no row. */
  rulesOf(key: string): readonly Rule[]
  /** The keys that are blocked or not fresh. Stores that keep no key strings throw. */
  keys(nowUs: number): Iterable<string>
  /** How many keys are blocked or not fresh. Looks at every row. */
  size(nowUs: number): number
  stats(): TableStats
}

/**
 * AsyncStore is the contract of stores that answer later, such as Redis. The store's own clock
 * decides; `clock` is only what callers sleep by.
 */
export interface AsyncStore {
  readonly kind: 'async'
  readonly clock: Clock
  /** The limiter on this store: `createAsyncLimiter`. */
  createLimiter(rules: Rule | readonly Rule[] | Policy, options: AsyncLimiterOptions): AsyncLimiter
  /** As `open` of a `Store`. No caller waits longer than `timeoutMs` for an answer. */
  open(
    name: string,
    ruleLists: readonly (readonly Rule[])[],
    timeoutMs: number,
    mayChange?: boolean,
  ): AsyncTable
}

/** Verb is what can be asked about one key. */
export type Verb = 'check' | 'peek' | 'charge' | 'refund' | 'block' | 'unblock' | 'reset'

/**
 * Request is one thing that is asked of an `AsyncTable` about one key, and is told what came of it. The
 * last fields belong to the table while it works on the request.
 */
export interface Request {
  readonly verb: Verb
  /** The rules; those of an empty list for a block, its end and a reset. */
  readonly set: RuleSet
  readonly key: string
  /** Units; of a block, microseconds. */
  readonly cost: number
  /**
   * The moment, by `performance.now()`, from which on no caller waits for it: what has not begun by
   * then should change nothing any more. It may be put off meanwhile.
   */
  readonly dueMs: number
  /**
   * Asks for a little more time when `dueMs` has passed before it could begin. True if there is, as
   * once after the event loop was blocked: `dueMs` is later then.
   */
  putOff?(): boolean
  /** Called once, later. `check` and `peek` have a decision. */
  done(decision?: Decision): void
  failed(error: unknown): void

  /** Set when other writers were faster: if time runs out now, the store has not failed. */
  isContended: boolean
  /** Its place in line. */
  order: number
  /** The next request about this key in the same trip. */
  next: Request | undefined
  /** Units that a check would like to lease. */
  lease: number
  /** The instant from which on a refund gives nothing back; 0 for never. */
  untilUs: number
}

/**
 * AsyncTable is a `Table` that answers later. Each request is atomic. When its store fails, requests
 * fail and promises reject; they may also take too long, or for ever, except for those of `clear` and
 * `keys`, which make several trips and must limit the time of each.
 */
export interface AsyncTable {
  use(rules: readonly Rule[]): RuleSet
  /** The part of the store that a key is in, if parts can fail while others go on. */
  partOf?(key: string): number
  /** A decision that needs no trip, if this is one. */
  decideAtOnce?(set: RuleSet, key: string, cost: number, spend: boolean): Decision | undefined
  /** Does these in order, with as few trips as can be. */
  ask(requests: readonly Request[]): void
  clear(): Promise<void>
  /** The keys that have a state or a block, page by page. */
  keys(): AsyncIterable<readonly string[]>
  stats(): AsyncStats
  /** Gives back what it holds. */
  close?(): Promise<void>
}

/** AsyncStats are counts since the limiter was made. */
export interface AsyncStats {
  /** Rows that were read and decided on again, since another writer was faster. */
  readonly contended: number
}

/** TableStats are counts since the store was made. */
export interface TableStats {
  /** Rows held now, those that have become fresh since included. */
  readonly rows: number
  readonly maxKeys: number
  /** Keys that are blocked now, or were until lately. */
  readonly blocked: number
  /** States that were still in use and had to go because the store was full. */
  readonly evictions: number
  /** Unknown keys that started with the floor's units used. */
  readonly floored: number
}
