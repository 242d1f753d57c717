import type { Rule } from '../../core/rule.ts'
import type { TimeLimit } from '../../failure/time-limit.ts'
import type { Request } from '../store.ts'
import type { EngineTime } from './engine-time.ts'
import type { RowNames } from './names.ts'
import type { RemoteRules } from './remote-rules.ts'

/** Batch is the requests of one trip: of each key the first, which has the others behind it. */
export interface Batch {
  readonly firsts: readonly Request[]
  /** The names of the rows. */
  readonly names: readonly string[]
  /**
   * Where keys have fields: for each first the places of its rows among the names, and the rules of each
   * row. undefined: each first has a row of its own, in the same order.
   */
  readonly joint: JointBatch | undefined
  /** The moment of our clock up to which it must have begun. */
  readonly untilMs: number
}

export interface JointBatch {
  readonly places: readonly (readonly number[])[]
  readonly sets: readonly RemoteRules[]
}

/** Trip is when a trip was made: the instant of the engine's clock, and of ours when it was sent. */
export interface Trip {
  readonly nowUs: number
  readonly sentMs: number
}

/** Found is what a trip found: the engine's time, and the text of each key's row or null. */
export interface Found {
  readonly nowUs: number
  /** undefined where nothing was done: the deadline had passed, or the time was not the one expected. */
  readonly texts: readonly (string | null)[] | undefined
  /** What the engine knows the rows by, where it does not compare texts. */
  readonly versions?: readonly unknown[]
}

/** RowChange is a row to be replaced. */
export interface RowChange {
  /** The name of the row. */
  readonly name: string
  /** The text that was read; null for none. */
  readonly from: string | null
  /** What `read` gave with that text. */
  readonly version: unknown
  /** The new text; null to remove the row. */
  readonly to: string | null
  /** When the new row is fresh and may be dropped, in milliseconds since 1970. */
  readonly expiresMs: number
  /** A later expiry that the row has stays, where the engine tells it. */
  readonly keepsExpiry?: boolean
  /** The instant at which it was decided, in microseconds since 1970. */
  readonly nowUs: number
  /** The instant of the engine's clock from which on nothing is to be changed; 0 for never. */
  readonly untilUs: number
}

/** Engine is where rows are kept, as texts by name. */
export interface Engine {
  /** What is known of its clock so far: a first guess for every slot. */
  readonly time: EngineTime
  /** Gets ready for a rule. */
  prepare(rule: Rule): void
  /**
   * Reads the rows of these keys. `untilUs` gives the deadline by the engine's clock, 0 as long as
   * that is unknown.
   */
  visit(batch: Batch, untilUs: () => number): Promise<Found>
  /**
   * Whether `visit` also does the requests by these rules, with every row that was written for the same
   * limits and can be read. The others are swapped.
   */
  decides(set: RemoteRules): boolean
  /** Replaces all these rows if none has changed; else none of them, and false. */
  swap(changes: readonly RowChange[]): Promise<boolean>
  /** Whether only single rows can be swapped. */
  readonly isRowwise: boolean
  /** Whether rows may be in different slots, of which one trip reaches one. */
  readonly hasSlots: boolean
  /** Whether it tells when a row expires, so that plain rows need not. */
  readonly tellsExpiry: boolean
  /** Where requests about a row may go together. */
  slotOf(name: string): number
  /** The part of the engine that a row is in, if parts can fail while others go on. */
  partOf(name: string): number
  /** The keys of all rows with such names, page by page. `limited` bounds each trip. */
  keys(names: RowNames, limited: TimeLimit['limited']): AsyncIterable<readonly string[]>
  clear(names: RowNames, limited: TimeLimit['limited']): Promise<void>
}
