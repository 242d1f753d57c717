import type { Rule } from '../../core/rule.ts'
import type { TimeLimit } from '../../failure/time-limit.ts'
import type { Request } from '../store.ts'
import type { EngineTime } from './engine-time.ts'
import type { RowNames } from './names.ts'
import type { RemoteRules } from './remote-rules.ts'

/** Batch is the requests of one round trip: the first of each key, which links to the others. */
export interface Batch {
  readonly firsts: readonly Request[]
  /** The names of the rows. */
  readonly names: readonly string[]
  /**
   * For keys with fields: the indexes of each first request's rows in `names`, and the rules of each
   * row. If undefined, `names[i]` is the row of `firsts[i]`.
   */
  readonly joint: JointBatch | undefined
  /** The moment of `performance.now()` by which the trip must have started. */
  readonly untilMs: number
}

/** JointBatch describes the rows of a batch whose keys have fields. */
export interface JointBatch {
  readonly places: readonly (readonly number[])[]
  readonly sets: readonly RemoteRules[]
}

/** Trip has the times of a round trip: the engine's instant, and our moment of sending. */
export interface Trip {
  readonly nowUs: number
  readonly sentMs: number
}

/** Found is the result of a round trip: the engine's time, and the text of each row, or null. */
export interface Found {
  readonly nowUs: number
  /**
   * undefined if the engine did nothing: the deadline had passed, or its time was outside the
   * edges.
   */
  readonly texts: readonly (string | null)[] | undefined
  /** The version of each row, for engines that do not compare texts. */
  readonly versions?: readonly unknown[]
}

/** RowChange is a compare-and-swap of one row. */
export interface RowChange {
  /** The name of the row. */
  readonly name: string
  /** The text that was read; null for no row. */
  readonly from: string | null
  /** The version that `read` returned with that text. */
  readonly version: unknown
  /** The new text; null to delete the row. */
  readonly to: string | null
  /** When the new row may expire, in milliseconds since 1970. */
  readonly expiresMs: number
  /**
   * Whether to keep the row's present expiry if that is later. Only for engines with `tellsExpiry`.
   */
  readonly keepsExpiry?: boolean
  /** The instant of the decision, in microseconds since 1970. */
  readonly nowUs: number
  /** The deadline by the engine's clock, from which on nothing may change; 0 for none. */
  readonly untilUs: number
}

/** Engine stores rows as texts by name. */
export interface Engine {
  /** The estimate of its clock so far: the first guess for every slot. */
  readonly time: EngineTime
  /** Prepares for a rule. */
  prepare(rule: Rule): void
  /**
   * Reads the rows of a batch. `untilUs` returns the deadline by the engine's clock, 0 while that is
   * unknown.
   */
  visit(batch: Batch, untilUs: () => number): Promise<Found>
  /**
   * Whether `visit` also executes requests by these rules, on every row that the same limits wrote
   * and that it can decode. The library swaps the other rows.
   */
  decides(set: RemoteRules): boolean
  /** Replaces all rows if none has changed since the read; else none, and returns false. */
  swap(changes: readonly RowChange[]): Promise<boolean>
  /** Whether it can only swap single rows. */
  readonly isRowwise: boolean
  /** Whether rows are partitioned into slots, and one trip reaches one slot only. */
  readonly hasSlots: boolean
  /** Whether it reports when a row expires, so that plain rows can omit it. */
  readonly tellsExpiry: boolean
  /** Returns the slot of a row. One trip serves one slot. */
  slotOf(name: string): number
  /** Returns the part of the engine that holds a row, if parts can fail independently. */
  partOf(name: string): number
  /** Lists the keys of all rows with such names, page by page. `limited` bounds each trip. */
  keys(names: RowNames, limited: TimeLimit['limited']): AsyncIterable<readonly string[]>
  clear(names: RowNames, limited: TimeLimit['limited']): Promise<void>
}
