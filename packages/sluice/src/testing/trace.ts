import type { Rule } from '../core/rule.ts'

/**
 * TraceLine is a line of a trace: `atMs` after its start, a check of `cost` → allowed, remaining,
 * retryAfterMs and, if it matters, delayMs.
 */
export type TraceLine = readonly [
  atMs: number,
  cost: number,
  allowed: boolean,
  remaining: number,
  retryAfterMs: number,
  delayMs?: number,
]

/**
 * Trace specifies the behaviour of a rule by hand. Traces are the readable part of the
 * specification.
 */
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
