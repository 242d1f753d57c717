import { addressKey } from 'sluice'
import type { Outcome } from '../../decided.ts'
import { MOST_UNITS } from '../../most-units.ts'

/** LogRequest is one request of a log or a scenario: its time, key, cost and details. */
export interface LogRequest extends LineDetails {
  /** Whole microseconds since 1970. */
  readonly timeUs: number
  readonly key: string
  readonly cost: number
  /** The only rule set that decides on it, for a retry after its refusal; -1 for all. */
  readonly only: number
}

/** LineDetails are the details that a line may have besides time, key and cost. */
export interface LineDetails {
  readonly tier: string | undefined
  /** The name of a route, if the log has it; empty for a call of the API. */
  readonly route: string | undefined
  readonly outcome: Outcome | undefined
  /** The HTTP request; undefined if the log does not have it, or no rule set needs it. */
  readonly http: HttpRequest | undefined
  /** Whether `key` is a key of the service, and not another log's name of a client. */
  readonly isKey: boolean
  /** Whether `cost` replaces the cost of a route. */
  readonly isCost: boolean
}

/** HttpRequest is what routes match, as far as a log has it. */
export interface HttpRequest {
  /** Path and query as sent; empty if they cannot be read. */
  readonly target: string
  readonly method: string | undefined
  readonly host: string | undefined
}

/** LineReader reads a line that is not empty. A string is the reason why it cannot be read. */
export type LineReader = (line: string) => LogRequest | string

/** NO_DETAILS stands for a line with an address and a time only. */
export const NO_DETAILS: LineDetails = {
  tier: undefined,
  route: undefined,
  outcome: undefined,
  http: undefined,
  isKey: false,
  isCost: false,
}

/** The longest key of limiters. */
const LONGEST_KEY = 1_024

/** The latest time: later ones would leave no room in 2^53 for what limiters add. */
const LATEST_US = Date.UTC(2150, 0, 1) * 1_000

/** requestOf checks the values of a line, and returns the reason if they make no request. */
export function requestOf(
  timeUs: number | undefined,
  key: string,
  cost = 1,
  details = NO_DETAILS,
): LogRequest | string {
  if (timeUs === undefined) return 'the time cannot be read'
  if (timeUs > LATEST_US) return 'the time is after the year 2150'
  if (key === '') return 'the key is empty'
  if (key.length > LONGEST_KEY) return `the key is longer than ${LONGEST_KEY} units`
  if (!Number.isInteger(cost) || cost < 0 || cost > MOST_UNITS) {
    return `the cost is not a whole number from 0 to ${MOST_UNITS.toLocaleString('en')}`
  }
  // The gateway identifies IPv6 clients by their network as well.
  const client = key.includes(':') ? (addressKey(key) ?? key) : key
  const { tier, route, outcome, http, isKey, isCost } = details
  return { timeUs, key: client, cost, tier, route, outcome, http, isKey, isCost, only: -1 }
}
