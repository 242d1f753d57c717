import type { Clock } from '../core/clock.ts'
import type { Cost } from '../core/cost.ts'
import type { Decision, RuleDecision } from '../core/decision.ts'
import type { Held } from '../core/held.ts'
import type { AnyKey, FieldKey } from '../core/key.ts'
import type { Rule } from '../core/rule.ts'
import type { Policy } from '../limiter/policy.ts'
import type { AsyncLimiter, AsyncLimiterOptions } from '../limiter/verbs.ts'

/**
 * Store keeps the state of every key, and owns atomicity and the clock. This is the contract of
 * synchronous stores (memory, compact, shared memory).
 */
export interface Store {
  /** Tells the two kinds of stores apart. */
  readonly kind: 'sync'
  /** The clock that decides. */
  readonly clock: Clock
  /**
   * The object that holds the rows, if several store objects may share it. Default: the store
   * itself.
   */
  readonly owner?: object
  /** Returns the name of a limiter's rows on the owner. Default: the limiter's name. */
  rowsOf?(limiter: string): string
  /**
   * Opens the table of the limiter called `name`, with the rule lists that it starts with. A second
   * limiter of that name shares the table and must have the same rule names and algorithms. With
   * `mayChange`, a policy may later give keys rules of these names with other limits.
   */
  open(name: string, ruleLists: readonly (readonly Rule[])[], mayChange?: boolean): Table
}

/** RuleSet is a list of rules, prepared for one table, that are decided together. */
export interface RuleSet {
  /** The rules, without the penalty. */
  readonly rules: readonly Rule[]
  /** The smallest capacity. A larger cost can never pass. */
  readonly capacity: number
  /** Whether a rule may hand out delays. */
  readonly delays: boolean
  /** Whether a rule holds units until they are released. */
  readonly holds: boolean
  /** The rule that counts refusals and blocks the key after too many. Not part of `rules`. */
  readonly penalty: Rule | undefined
  /** The generation to give to a holding state that has none yet. */
  generation: number
  /** The holds of the last spend: for each rule its state's generation and a slot. */
  readonly held: Float64Array
}

/**
 * Table keeps one row per key: the cells of all rules of the limiter, and which rules wrote them.
 * Each call is atomic. A refusal writes nothing.
 */
export interface Table<Set extends RuleSet = RuleSet, Key = string> {
  /** Whether other threads use the same rows. */
  readonly isShared: boolean
  /** The store's clock, which never goes backwards. */
  nowUs(): number
  /**
   * Prepares a list of rules. States are matched by rule name and algorithm. If keys have fields,
   * the fields in `off` are switched off: neither their rules nor their blocks count.
   */
  use(rules: readonly Rule[], off?: readonly string[]): Set
  /**
   * Spends and returns true, or returns false: the fast path. Without `nowUs` it reads the clock
   * itself, which is faster.
   */
  allow(set: Set, key: Key, cost: Cost, nowUs?: number): boolean
  /** Decides, and spends if `spend` is set and nothing refuses. `nowUs` is as in `allow`. */
  decide(set: Set, key: Key, cost: Cost, spend: boolean, nowUs?: number): Decision
  /** Counts a refusal of `cost`, and blocks the key after too many. */
  punish(set: Set, key: Key, cost: Cost, nowUs: number): void
  /**
   * First step of a decision over several tables: finds the key's row and returns the wait, 0 if the
   * rules admit. With `spend` it carries the row over to these rules. Missing on tables that other
   * threads change.
   */
  ask?(set: Set, key: Key, cost: Cost, spend: boolean, nowUs: number): number
  /** Second step, right after `ask`: spends. */
  take?(set: Set, key: Key, cost: Cost, nowUs: number): void
  /**
   * Third step: writes the decision of rule `i` to `each[places[i]]`, and returns for how many
   * microseconds the key is still blocked.
   */
  tell?(
    set: Set,
    key: Key,
    cost: Cost,
    allowed: boolean,
    nowUs: number,
    each: RuleDecision[],
    places: readonly number[],
  ): number
  /** Debits `cost` whether it fits or not. May leave debt. */
  charge(set: Set, key: Key, cost: Cost, nowUs: number): void
  /** Gives back units that were spent at `spentUs`; with `RECENT`, those of the latest spends. */
  refund(set: Set, key: Key, cost: Cost, nowUs: number, spentUs: number): void
  /** Ends the holds of a permit, and charges `change`; negative units are refunded. */
  finish(set: Set, key: Key, held: Held, change: Cost, nowUs: number): void
  /** Restarts the holds of a permit now and writes them to `set.held`; false if one has ended. */
  extend(set: Set, key: Key, held: Held, nowUs: number): boolean
  /** Refuses the key until `untilUs`, even if its rules admit. */
  block(key: Key, untilUs: number, nowUs: number): void
  /** Lifts the block of the key. */
  unblock(key: Key): void
  /** Makes the key fresh and lifts its block. */
  reset(key: Key, nowUs: number): void
  /** Removes every row, block and floor. */
  clear(): void
  /** Returns the rules that last wrote the key's row; none if it has no row. */
  rulesOf(key: Key): readonly Rule[]
  /** Returns the keys that are blocked or not fresh. Stores that keep no key strings throw. */
  keys(nowUs: number): Iterable<Key>
  /** Counts the keys that are blocked or not fresh. Visits every row. */
  size(nowUs: number): number
  /** Counts since the store was made. */
  stats(): TableStats
}

/**
 * AsyncStore is the contract of asynchronous stores, such as Redis. The store's own clock decides;
 * `clock` only times how long callers sleep.
 */
export interface AsyncStore {
  /** Tells the two kinds of stores apart. */
  readonly kind: 'async'
  /** The clock by which callers sleep. */
  readonly clock: Clock
  /** The object that holds the rows, such as a Redis client. Default: the store itself. */
  readonly owner?: object
  /** Returns the start of the names of a limiter's rows on the owner. Default: the limiter's name. */
  rowsOf?(limiter: string): string
  /** Creates a limiter on this store: `createAsyncLimiter`. */
  createLimiter(rules: Rule | readonly Rule[] | Policy, options: AsyncLimiterOptions): AsyncLimiter
  /** Like `open` of a `Store`. No caller waits longer than `timeoutMs` for an answer. */
  open(
    name: string,
    ruleLists: readonly (readonly Rule[])[],
    timeoutMs: number,
    mayChange?: boolean,
  ): AsyncTable
}

/** Verb names an operation on one key. */
export type Verb =
  | 'check'
  | 'peek'
  | 'charge'
  | 'refund'
  | 'finish'
  | 'takeBack'
  | 'extend'
  | 'block'
  | 'unblock'
  | 'reset'

/**
 * Request is one operation on one key that an `AsyncTable` executes. The table reports the result by
 * `done` or `failed`; it owns the mutable fields while it works on the request.
 */
export interface Request {
  /** The operation. */
  readonly verb: Verb
  /** The rules. For block, unblock and reset this is the set of an empty list. */
  readonly set: RuleSet
  /** The key as text. A key with fields is encoded into one text. */
  readonly key: string
  /** The fields of the key, if keys have fields. */
  readonly fields: FieldKey | undefined
  /** Units; for a block, its duration in microseconds. */
  readonly cost: Cost
  /**
   * The deadline, by `performance.now()`, after which no caller waits for the answer. A request that
   * has not started by then must not change anything. `putOff` may move it.
   */
  readonly dueMs: number
  /**
   * Asks for a later deadline if `dueMs` has passed before the request could start. Moves `dueMs`
   * and returns true if it is granted, as it is once after the event loop was blocked.
   */
  putOff?(): boolean
  /** Either this or `failed` is called once, later. `check` and `peek` give a decision. */
  done(decision?: Decision): void
  /** Called once, instead of `done`, when the store failed. */
  failed(error: unknown): void

  /** For a check: whether its refusal counts towards the penalty. */
  readonly isCounted: boolean
  /** Set once it was sent. From then until its deadline the store may execute it. */
  isSent: boolean
  /** Set when another writer won a swap. A timeout then is contention, not a failure of the store. */
  isContended: boolean
  /** Its position in the queue. */
  order: number
  /** For a key with fields: the names of its rows and the rules of each. */
  rows: readonly RequestRow[] | undefined
  /** The next request for this key in the same round trip. */
  next: Request | undefined
  /** For a check that holds units: the generation to give to a state that has none; else 0. */
  readonly generation: number
  /** The permit for `finish` and `extend`. */
  readonly held: Held | undefined
  /** The units that `finish` charges; negative units are refunded. */
  readonly change: Cost
  /**
   * For a decision that spends from its rows one by one: the id by which `takeBack` can undo this
   * check, and for how many microseconds the row remembers it.
   */
  readonly pending: { readonly id: string; readonly lifeUs: number } | undefined
  /** The holds of an admitted check or of an extended permit. */
  result: Held | undefined
  /** Units that a check asks to lease in addition. */
  lease: number
  /** The instant of the engine's clock from which a refund has no effect; 0 for never. */
  untilUs: number
}

/** RequestRow is one of the rows of a request about a key with fields. */
export interface RequestRow {
  readonly name: string
  readonly set: RuleSet
}

/**
 * AsyncTable is an asynchronous `Table`. Each request is atomic. When its store fails, requests
 * fail and promises reject. They may also stay pending for ever, except those of `clear` and
 * `keys`, which make several round trips and must limit the time of each.
 */
export interface AsyncTable {
  /** Prepares a list of rules, like `use` of a `Table`. */
  use(rules: readonly Rule[], off?: readonly string[]): RuleSet
  /** Replaces a key before anything else is done with it. */
  readonly hash?: ((key: AnyKey) => AnyKey) | undefined
  /** Returns the part of the store that holds a key, if parts can fail independently. */
  partOf?(key: string): number
  /** Decides without a round trip if it can, from a cached refusal or leased units. */
  decideAtOnce?(set: RuleSet, key: string, cost: Cost, spend: boolean): Decision | undefined
  /** Executes requests in order, with as few round trips as possible. */
  ask(requests: readonly Request[]): void
  /** Removes every row and block. */
  clear(): Promise<void>
  /** Lists the keys that have a state or a block, page by page. */
  keys(): AsyncIterable<readonly AnyKey[]>
  /** Counts since the limiter was made. */
  stats(): AsyncStats
  /** Returns leased units to the store. */
  close?(): Promise<void>
}

/** AsyncStats counts events since the limiter was created. */
export interface AsyncStats {
  /** Rows that were read and decided again because another writer had changed them. */
  readonly contended: number
}

/** TableStats counts rows now and events since the store was created. */
export interface TableStats {
  /** Rows now, including fresh ones not yet removed. */
  readonly rows: number
  /** The maximum number of rows. */
  readonly maxKeys: number
  /** Blocks now, including ended ones not yet removed. */
  readonly blocked: number
  /** Rows evicted while still in use, because the store was full. */
  readonly evictions: number
  /** Unknown keys that started from the floor, with units of evicted keys used. */
  readonly floored: number
}
