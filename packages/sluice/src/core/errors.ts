import type { Decision } from './decision.ts'

/** errorCodes lists every code a `SluiceError` may carry, with its meaning in one line. */
export const errorCodes = {
  SLUICE_ALGORITHM: 'an algorithm gave a wait that is not a number',
  SLUICE_ALLOW_DELAYS: 'allow() was called with a leaky bucket, which may delay requests',
  SLUICE_CLOCK: 'a clock does not give whole, positive microseconds',
  SLUICE_CLOSED: 'the limiter is closed',
  SLUICE_COST: 'a cost is not a whole number in range',
  SLUICE_COST_EXCEEDS_CAPACITY: 'a cost is larger than a rule could ever admit',
  SLUICE_DURATION: 'a duration cannot be read or is out of range',
  SLUICE_KEY: 'a key is not a non-empty string of at most 1,024 UTF-16 units',
  SLUICE_NEEDS_ACQUIRE: 'a verb that gives no permit was called with a rule that holds units',
  SLUICE_NOT_LISTABLE: 'entries() was called on a store that cannot list its keys',
  SLUICE_OPTION: 'an option is missing, misspelt or has an invalid value',
  SLUICE_REPLAY: 'a replay instruction is malformed',
  SLUICE_RULE_BURST: 'the burst of a rule is not a whole number in range',
  SLUICE_RULE_DUPLICATE: 'two rules of one limiter have the same name',
  SLUICE_RULE_LIMIT: 'the limit of a rule is not a whole number in range',
  SLUICE_RULE_NAME: 'the name of a rule or limiter is not a short printable string',
  SLUICE_RULE_QUEUE: 'the queue of a rule is not a whole number in range',
  SLUICE_RULE_RANGE: 'a rule would take more than 100 years to become fresh',
  SLUICE_RULE_SYNTAX: 'the text of a rule cannot be read',
  SLUICE_RULE_UNSUPPORTED: 'a store does not support a rule',
  SLUICE_STORE_FULL: 'a store of fixed size is full',
  SLUICE_STORE_MISMATCH: 'a limiter of the same name with other rules already uses the store',
  SLUICE_STORE_NAME: 'another limiter on the store has the same name',
  SLUICE_STORE_UNAVAILABLE: 'a store failed or did not answer in time',
  SLUICE_TIER_UNKNOWN: 'a tier is not one of the policy',
  SLUICE_WAIT_TOO_LONG: 'a call would have to wait too long for its turn',
} as const

/**
 * ErrorCode is one of the codes of `errorCodes`. Each has a section in `docs/reference/errors.md`.
 */
export type ErrorCode = keyof typeof errorCodes

/** SluiceErrorOptions is what a `SluiceError` has besides code and message. */
interface SluiceErrorOptions extends ErrorOptions {
  readonly decision?: Decision
}

const isSluiceError = Symbol.for('sluice.error')

/**
 * SluiceError is thrown for mistakes only: a bad value, a misused call, a closed limiter.
 * A refusal is a value (`decision.allowed === false`), never an error.
 */
export class SluiceError extends Error {
  /** `'SluiceError'`. */
  override readonly name = 'SluiceError'
  /** Stable; branch on this, not on the message. */
  readonly code: ErrorCode
  /** The refusal behind `SLUICE_WAIT_TOO_LONG`; other errors have none. */
  declare readonly decision?: Decision

  static {
    Object.defineProperty(SluiceError.prototype, isSluiceError, { value: true })
  }

  /**
   * Tells whether a value is a `SluiceError`. `instanceof` cannot always tell: a program that uses
   * both `import` and `require` has two such classes.
   */
  static is(value: unknown): value is SluiceError {
    return typeof value === 'object' && value !== null && isSluiceError in value
  }

  constructor(code: ErrorCode, message: string, options?: SluiceErrorOptions) {
    super(message, options)
    this.code = code
    if (options?.decision) this.decision = options.decision
  }
}

/**
 * shown formats any value for an error message: short, on one line, and without ever throwing, since
 * the value may come from an attacker.
 */
export function shown(value: unknown): string {
  if (typeof value === 'string') {
    const text = JSON.stringify(value.slice(0, 64))
    return value.length > 64 ? `${text.slice(0, -1)}…" (${value.length} units)` : text
  }
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'function') return 'a function'
  if (typeof value !== 'object' || value === null) return String(value)
  try {
    return Array.isArray(value) ? 'an array' : 'an object'
  } catch {
    return 'a revoked proxy'
  }
}

/**
 * reasonOf returns the message of an error. An error without one may have several causes, such as
 * one per address of a host, or a code.
 */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error === 'string' ? error : shown(error)
  if (error.message !== '') return error.message
  const { errors, code } = error as { readonly errors?: unknown; readonly code?: unknown }
  if (Array.isArray(errors) && errors.length > 0) return errors.map(reasonOf).join('; ')
  return typeof code === 'string' ? code : error.name
}
