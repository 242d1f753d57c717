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
 * stores that answer at once (memory, compact, shared memory).
 */
export interface Store {
  /** Tells the two kinds of stores apart. */
  readonly kind: 'sync'
  /** What decides. */
  readonly clock: Clock
  /** What keeps the rows, where other store objects may use the same. Default: the store itself. */
  readonly owner?: object
  /** What the rows of a limiter are called on the owner. Default: the limiter's name. */
  rowsOf?(limiter: string): string
  /**
   * The table of the limiter called `name`, ready for the lists of rules it starts with. A second
   * limiter of that name shares the table, and must have the same rule names and algorithms. With
   * `mayChange`, keys may get rules later that have these names and other limits.
   */
  open(name: string, ruleLists: readonly (readonly Rule[])[], mayChange?: boolean): Table
}

/** RuleSet is a list of rules made ready for one table: what is decided together. */
export interface RuleSet {
  /** The rules, without the penalty. */
  readonly rules: readonly Rule[]
  /** The least capacity: a larger cost can never pass. */
  readonly capacity: number
  /** Whether a rule may hand out delays. */
  readonly delays: boolean
  /** Whether a rule holds units until they are released. */
  readonly holds: boolean
  /** Counts refusals, and blocks the key after too many. It is none of `rules`. */
  readonly penalty: Rule | undefined
  /** What a state that holds units is to be called if it has no generation yet. */
  generation: number
  /** What the last spend holds: for each rule the generation of its state, and a slot. */
  readonly held: Float64Array
}

/**
 * Table keeps one row per key: the cells of all the limiter's rules, and how they were figured.
 * Each call is atomic. A call that refuses writes nothing.
 */
export interface Table<Set extends RuleSet = RuleSet, Key = string> {
  /** Whether other threads use it, too. */
  readonly isShared: boolean
  /** The store's clock, which never goes backwards. */
  nowUs(): number
  /**
   * Makes a list of rules ready; states are found by rule name and algorithm. Where keys have fields, those
   * in `off` are switched off: nothing of them counts, not even a block.
   */
  use(rules: readonly Rule[], off?: readonly string[]): Set
  /**
   * Spends and answers true, or answers false: the fast path. Without `nowUs` it reads the clock
   * itself, which is faster.
   */
  allow(set: Set, key: Key, cost: Cost, nowUs?: number): boolean
  /** Decides, and spends if `spend` is set and nothing refuses. `nowUs` is as in `allow`. */
  decide(set: Set, key: Key, cost: Cost, spend: boolean, nowUs?: number): Decision
  /** Counts that `cost` was refused, and blocks the key if there were too many refusals. */
  punish(set: Set, key: Key, cost: Cost, nowUs: number): void
  /**
   * The first half of a decision over several tables: finds the key's row, carried over to these rules
   * if `spend` is set, and gives the wait, 0 if it admits. Left out by tables that other threads change.
   */
  ask?(set: Set, key: Key, cost: Cost, spend: boolean, nowUs: number): number
  /** The second half, right after: spends. */
  take?(set: Set, key: Key, cost: Cost, nowUs: number): void
  /**
   * After that: puts what each rule decides into `each`, at these places, and gives how long the key is
   * blocked, in microseconds.
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
  /** Debits `cost` even if it does not fit. */
  charge(set: Set, key: Key, cost: Cost, nowUs: number): void
  /** Gives back what was spent at `spentUs`; with `RECENT` the latest spends. */
  refund(set: Set, key: Key, cost: Cost, nowUs: number, spentUs: number): void
  /** Ends what a permit holds; charges `change`, or gives it back where it is below 0. */
  finish(set: Set, key: Key, held: Held, change: Cost, nowUs: number): void
  /** Makes what a permit holds begin now, as `set.held` then says; false if a hold has ended. */
  extend(set: Set, key: Key, held: Held, nowUs: number): boolean
  /** Refuses the key until `untilUs`, whatever its rules say. */
  block(key: Key, untilUs: number, nowUs: number): void
  /** Lifts the block of the key. */
  unblock(key: Key): void
  /** Makes the key fresh and lifts its block. */
  reset(key: Key, nowUs: number): void
  /** Forgets every key, block and floor. */
  clear(): void
  /** The rules that a key's row was last used with; none where it has no row. */
  rulesOf(key: Key): readonly Rule[]
  /** The keys that are blocked or not fresh. Stores that keep no key strings throw. */
  keys(nowUs: number): Iterable<Key>
  /** How many keys are blocked or not fresh. Looks at every row. */
  size(nowUs: number): number
  /** Counts since the store was made. */
  stats(): TableStats
}

/**
 * AsyncStore is the contract of stores that answer later, such as Redis. The store's own clock
 * decides; `clock` is only what callers sleep by.
 */
export interface AsyncStore {
  /** Tells the two kinds of stores apart. */
  readonly kind: 'async'
  /** What callers sleep by. */
  readonly clock: Clock
  /** What keeps the rows, such as a client of Redis. Default: the store itself. */
  readonly owner?: object
  /** What the rows of a limiter begin with on the owner. Default: the limiter's name. */
  rowsOf?(limiter: string): string
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
 * Request is one thing that is asked of an `AsyncTable` about one key, and is told what came of it. The
 * last fields belong to the table while it works on the request.
 */
export interface Request {
  /** What is asked. */
  readonly verb: Verb
  /** The rules; those of an empty list for a block, its end and a reset. */
  readonly set: RuleSet
  /** The key as a text; of a key with fields, all of them in one. */
  readonly key: string
  /** The fields of a key that has some. */
  readonly fields: FieldKey | undefined
  /** Units; of a block, microseconds. */
  readonly cost: Cost
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
  /** Called once, instead of `done`, when the store failed. */
  failed(error: unknown): void

  /** Of a check: whether its refusal counts for a penalty. */
  readonly isCounted: boolean
  /** Set once it was sent: the store may do it from then on, until it is late. */
  isSent: boolean
  /** Set when other writers were faster: if time runs out now, the store has not failed. */
  isContended: boolean
  /** Its place in line. */
  order: number
  /** Of a key with fields: the names of its rows and the rules of each. */
  rows: readonly RequestRow[] | undefined
  /** The next request about this key in the same trip. */
  next: Request | undefined
  /** Of a check that is to hold: what a state without a generation is to be called; else 0. */
  readonly generation: number
  /** The permit that `finish` and `extend` are about, and what `finish` charges besides. */
  readonly held: Held | undefined
  /** What `finish` charges besides; below 0 it gives back. */
  readonly change: Cost
  /**
   * The id of a check that `takeBack` may undo, and for how many microseconds its row remembers it: where
   * the rows of a decision go one by one.
   */
  readonly pending: { readonly id: string; readonly lifeUs: number } | undefined
  /** What a check holds that was admitted, or a permit that was extended. */
  result: Held | undefined
  /** Units that a check would like to lease. */
  lease: number
  /** The instant from which on a refund gives nothing back; 0 for never. */
  untilUs: number
}

/** RequestRow is a row that a request about several is about. */
export interface RequestRow {
  readonly name: string
  readonly set: RuleSet
}

/**
 * AsyncTable is a `Table` that answers later. Each request is atomic. When its store fails, requests
 * fail and promises reject; they may also take too long, or for ever, except for those of `clear` and
 * `keys`, which make several trips and must limit the time of each.
 */
export interface AsyncTable {
  /** Makes a list of rules ready, as `use` of a `Table`. */
  use(rules: readonly Rule[], off?: readonly string[]): RuleSet
  /** The part of the store that a key is in, if parts can fail while others go on. */
  partOf?(key: string): number
  /** A decision that needs no trip, if this is one. */
  decideAtOnce?(set: RuleSet, key: string, cost: Cost, spend: boolean): Decision | undefined
  /** Does these in order, with as few trips as can be. */
  ask(requests: readonly Request[]): void
  /** Forgets every key and block. */
  clear(): Promise<void>
  /** The keys that have a state or a block, page by page. */
  keys(): AsyncIterable<readonly AnyKey[]>
  /** Counts since the limiter was made. */
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
  /** Rows held at most. */
  readonly maxKeys: number
  /** Keys that are blocked now, or were until lately. */
  readonly blocked: number
  /** States that were still in use and had to go because the store was full. */
  readonly evictions: number
  /** Unknown keys that started with the floor's units used. */
  readonly floored: number
}
