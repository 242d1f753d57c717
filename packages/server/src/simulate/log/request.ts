import { addressKey } from 'sluice'
import type { Outcome } from '../../decided.ts'
import { MOST_UNITS } from '../../most-units.ts'

/** LogRequest is one line of a log, or one of a scenario: who came when, for what, and how much. */
export interface LogRequest extends Told {
  /** Whole microseconds since 1970. */
  readonly timeUs: number
  readonly key: string
  readonly cost: number
  /** The only rule set that sees it, for a retry of what that one refused; -1 for all. */
  readonly only: number
}

/** Told is what a line may say besides time, key and cost. */
export interface Told {
  readonly tier: string | undefined
  /** The name of a route, if the log says it; empty for a decision asked for over the API. */
  readonly route: string | undefined
  readonly outcome: Outcome | undefined
  /** What was asked for; undefined where the log does not say, or no rule set needs it. */
  readonly http: HttpRequest | undefined
  /** Whether `key` is what the service counts by, and not what another log calls a client. */
  readonly isKey: boolean
  /** Whether `cost` counts in place of the cost of a route. */
  readonly isCost: boolean
}

/** HttpRequest is what routes are chosen by, as far as a log tells it. */
export interface HttpRequest {
  /** Path and query, as they were sent; empty if they cannot be read. */
  readonly target: string
  readonly method: string | undefined
  readonly host: string | undefined
}

/** LineReader reads a line that is not empty. A text is the reason why it cannot be read. */
export type LineReader = (line: string) => LogRequest | string

/** NOTHING_TOLD is what a line of an address and a time says. */
export const NOTHING_TOLD: Told = {
  tier: undefined,
  route: undefined,
  outcome: undefined,
  http: undefined,
  isKey: false,
  isCost: false,
}

/** The longest key that limiters take. */
const LONGEST_KEY = 1_024

/** Later times would leave no room in 2^53 for what a limiter adds to them. */
const LATEST_US = Date.UTC(2150, 0, 1) * 1_000

/** requestOf checks what was read from a line, and gives the reason when it is no request. */
export function requestOf(
  timeUs: number | undefined,
  key: string,
  cost = 1,
  told = NOTHING_TOLD,
): LogRequest | string {
  if (timeUs === undefined) return 'the time cannot be read'
  if (timeUs > LATEST_US) return 'the time is after the year 2150'
  if (key === '') return 'the key is empty'
  if (key.length > LONGEST_KEY) return `the key is longer than ${LONGEST_KEY} units`
  if (!Number.isInteger(cost) || cost < 0 || cost > MOST_UNITS) {
    return `the cost is no whole number from 0 to ${MOST_UNITS.toLocaleString('en')}`
  }
  // The gateway knows clients of IPv6 by their network, too.
  const client = key.includes(':') ? (addressKey(key) ?? key) : key
  const { tier, route, outcome, http, isKey, isCost } = told
  return { timeUs, key: client, cost, tier, route, outcome, http, isKey, isCost, only: -1 }
}
