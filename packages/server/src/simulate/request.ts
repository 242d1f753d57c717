import { addressKey } from 'sluice'
import type { Outcome } from '../decided.ts'

/** Request is one line of a log, or one of a scenario: who came when, and for how much. */
export interface Request {
  /** Whole microseconds since 1970. */
  readonly timeUs: number
  readonly key: string
  readonly cost: number
  /** What the log says, if it does. */
  readonly tier: string | undefined
  /** The name of a route, if the log says it; empty for a decision asked for over the API. */
  readonly route: string | undefined
  readonly outcome: Outcome | undefined
  /** The only rule set that sees it, for a retry of what that one refused; -1 for all. */
  readonly only: number
}

/** LineReader reads a line that is not empty. A text is the reason why it cannot be read. */
export type LineReader = (line: string) => Request | string

/** The longest key and the largest cost that limiters take. */
const LONGEST_KEY = 1_024
const LARGEST_COST = 10_000_000

/** Later times would leave no room in 2^53 for what a limiter adds to them. */
const LATEST_US = Date.UTC(2150, 0, 1) * 1_000

/** requestOf checks what was read from a line, and gives the reason when it is no request. */
export function requestOf(
  timeUs: number | undefined,
  key: string,
  cost = 1,
  tier?: string,
  route?: string,
  outcome?: Outcome,
): Request | string {
  if (timeUs === undefined) return 'the time cannot be read'
  if (timeUs > LATEST_US) return 'the time is after the year 2150'
  if (key === '') return 'the key is empty'
  if (key.length > LONGEST_KEY) return `the key is longer than ${LONGEST_KEY} units`
  if (!Number.isInteger(cost) || cost < 0 || cost > LARGEST_COST) {
    return 'the cost is no whole number from 0 to 10,000,000'
  }
  // The gateway knows clients of IPv6 by their network, too.
  const client = key.includes(':') ? (addressKey(key) ?? key) : key
  return { timeUs, key: client, cost, tier, route, outcome, only: -1 }
}
