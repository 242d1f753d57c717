import { readRule } from '../core/read-rule.ts'
import type { Rule } from '../core/rule.ts'
import { calendarWindow } from './calendar-window.ts'
import { concurrency } from './concurrency.ts'
import { fixedWindow } from './fixed-window.ts'
import { gcra } from './gcra.ts'
import { leakyBucket } from './leaky-bucket.ts'
import { slidingWindowCounter } from './sliding-window-counter.ts'
import { slidingWindowLog } from './sliding-window-log.ts'
import { tokenBucket } from './token-bucket.ts'
import { unlimited } from './unlimited.ts'

/** ruleFactories lists the factories of all algorithms that have a limit. */
export const ruleFactories = [
  fixedWindow,
  slidingWindowLog,
  slidingWindowCounter,
  tokenBucket,
  gcra,
  leakyBucket,
  calendarWindow,
  concurrency,
] as const

const algorithms = ruleFactories.map(({ algorithm }) => algorithm)

const UNLIMITED = /^\s*unlimited(?:[ \t]+name[ \t]+(\S+))?(?:[ \t]+by[ \t]+(\S+))?\s*$/

/**
 * parseRule reads a rule from text, for configuration files: `'100/1m burst 20 token-bucket'`,
 * `'5/1s queue 10 leaky-bucket name api'`, `'1000/1h by org'`, `'10 concurrent hold 30s'`,
 * `'unlimited'`. It returns the same rule as the algorithm's factory, and throws the same errors.
 * Text that does not parse throws `SLUICE_RULE_SYNTAX`.
 */
export function parseRule(text: string): Rule {
  const named = typeof text === 'string' && UNLIMITED.exec(text)
  if (named) return unlimited({ name: named[1], by: named[2] })
  return readRule(text, algorithms)
}
