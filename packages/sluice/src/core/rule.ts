import type { Algorithm } from './algorithm.ts'
import { MOST_UNITS } from './cost.ts'
import { CENTURY_US, type Duration, durationUs } from './duration.ts'
import { SluiceError, shown } from './errors.ts'
import { gcd } from './exact.ts'
import { checkOptions, checkWhole } from './options.ts'

/** What every rule factory takes. */
export interface RuleOptions {
  /** Units per `per`: a whole number from 1 to 10,000,000. */
  readonly limit: number
  /** A duration from 1 ms to 400 days: `'10s'`, `'1m'`, `'1h'`, `'1d'`, or milliseconds. */
  readonly per: Duration
  /** Tells the rules of one limiter apart, and names them to clients. Default: the algorithm's. */
  readonly name?: string
}

/**
 * Rule is a limit and the algorithm that keeps it: complete, checked and frozen. Make one with a
 * factory (`tokenBucket`, `fixedWindow`, …), with `parseRule`, or with `defineRule` for an
 * algorithm of your own. All rules have the same fields, so that call sites stay monomorphic.
 */
export interface Rule {
  readonly name: string
  readonly algorithm: Algorithm
  readonly limit: number
  readonly perUs: number
  /** The most units that can ever remain; a larger cost can never pass. */
  readonly capacity: number
  /** Whether windows start at multiples of `perUs` since 1970 rather than at a request. */
  readonly aligned: boolean
  /** The time of one unit, perUs / limit, is exactly `gapUs + gapRest / gapParts`. */
  readonly gapUs: number
  readonly gapRest: number
  readonly gapParts: number
  /** The time of a whole capacity is exactly `fullUs + fullRest / gapParts`. */
  readonly fullUs: number
  readonly fullRest: number
}

const DAY_MS = 86_400_000
const NAME = /^[\x20-\x7e]{1,64}$/

/** checkName throws unless `name` is 1 to 64 printable ASCII characters: it goes into headers. */
export function checkName(what: string, name: unknown): asserts name is string {
  if (typeof name === 'string' && NAME.test(name)) return
  throw new SluiceError(
    'SLUICE_RULE_NAME',
    `${what} must be 1 to 64 printable ASCII characters, got ${shown(name)}.`,
  )
}

/**
 * defineRule checks a rule's options and works out its figures. `extra` are the names of the
 * options that the factory itself reads; `capacity` defaults to the limit.
 */
export function defineRule(
  algorithm: Algorithm,
  options: RuleOptions,
  {
    capacity = options?.limit,
    aligned = false,
    extra = [],
  }: { capacity?: number; aligned?: boolean; extra?: readonly string[] } = {},
): Rule {
  if (typeof algorithm?.waitUs !== 'function') {
    throw new SluiceError(
      'SLUICE_OPTION',
      `defineRule: the first argument must be an algorithm, got ${shown(algorithm)}. ` +
        'Make one with defineAlgorithm().',
    )
  }
  const where = `${algorithm.name} rule`
  checkOptions(where, options, ['limit', 'per', 'name', ...extra])
  const { limit, per, name = algorithm.name } = options
  checkName(`${where}: name`, name)
  checkWhole(
    `rule "${name}": limit`,
    limit,
    1,
    MOST_UNITS,
    'SLUICE_RULE_LIMIT',
    'To switch a rule off, use unlimited().',
  )
  checkWhole(`rule "${name}": capacity`, capacity, 1, MOST_UNITS + 1)
  const perUs = durationUs(`rule "${name}": per`, per, 1, 400 * DAY_MS)
  const divisor = gcd(limit, perUs)
  const gapParts = limit / divisor
  const gapUs = Math.floor(perUs / limit)
  const gapRest = (perUs % limit) / divisor
  const fullUs = capacity * gapUs + Math.floor((capacity * gapRest) / gapParts)
  if (fullUs > CENTURY_US) {
    throw new SluiceError(
      'SLUICE_RULE_RANGE',
      `rule "${name}": ${capacity} units at ${limit} per ${shown(per)} would take more than ` +
        '100 years to become fresh. Lower the burst or queue, or raise the rate.',
    )
  }
  const fullRest = (capacity * gapRest) % gapParts
  return Object.freeze({
    name,
    algorithm,
    limit,
    perUs,
    capacity,
    aligned,
    gapUs,
    gapRest,
    gapParts,
    fullUs,
    fullRest,
  })
}

/** figuresOf is the same text for two rules that decide alike, whatever their names. */
export function figuresOf(rule: Rule): string {
  return `${rule.limit}/${rule.perUs}/${rule.capacity}/${rule.aligned}`
}

/** sameFigures tells whether two rules of one algorithm decide alike. */
export function sameFigures(a: Rule, b: Rule): boolean {
  if (a === b) return true
  return (
    a.limit === b.limit &&
    a.perUs === b.perUs &&
    a.capacity === b.capacity &&
    a.aligned === b.aligned
  )
}
