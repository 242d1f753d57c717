import type { Rule } from '../core/rule.ts'

/**
 * A line of a trace: at so many ms after its start, a check of this cost → allowed, remaining,
 * retryAfterMs, and, where it says something, delayMs.
 */
export type TraceLine = readonly [
  atMs: number,
  cost: number,
  allowed: boolean,
  remaining: number,
  retryAfterMs: number,
  delayMs?: number,
]

/** Trace is a rule's behaviour written down by hand: the part of the specification to read. */
export interface Trace {
  /** What it shows, as the name of a test. */
  readonly name: string
  /** The rule that is played. */
  readonly rule: Rule
  /**
   * The date of 0 ms, for rules that follow the calendar: not before 2100, where the clocks of some
   * stores start. Default: a full day, when the store's clock starts.
   */
  readonly start?: string
  /** What happens, in order. */
  readonly lines: readonly TraceLine[]
}
