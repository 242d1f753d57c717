import type { Algorithm } from './algorithm.ts'
import { MOST_UNITS } from './cost.ts'
import { CENTURY_US, type Duration, durationUs } from './duration.ts'
import { SluiceError, shown } from './errors.ts'
import { gcd, mulDiv, mulSub } from './exact.ts'
import { checkOptions, checkWhole } from './options.ts'
import type { Params } from './params.ts'
import { writeRule } from './rule-text.ts'

/** RuleOptions are the options of every rule factory. */
export interface RuleOptions {
  /** Units per `per`: a whole number from 1 to 10^12. */
  readonly limit: number
  /** A duration from 1 ms to 400 days: `'10s'`, `'1m'`, `'1h'`, `'1d'`, or milliseconds. */
  readonly per: Duration
  /** Identifies the rule within its limiter, and to clients. Default: the algorithm's name. */
  readonly name?: string
  /**
   * The field of the key that the rule counts: `'user'` of `{ user, org }`. `'global'` counts all
   * calls together, and is not a field. Default: the key is a string, and the rule counts it.
   */
  readonly by?: string
}

/**
 * Rule is a limit and the algorithm that enforces it: complete, checked and frozen. Create one with
 * a factory (`tokenBucket`, `fixedWindow`, …), with `parseRule`, or with `defineRule` for an
 * user-defined algorithm. All rules have the same fields, so that call sites stay monomorphic.
 */
export interface Rule<
  By extends string | undefined = string | undefined,
  Name extends string = string,
> {
  /** Identifies the rule within its limiter, and to clients. */
  readonly name: Name
  /** The field of the key that the rule counts, if keys have fields. */
  readonly by: By
  /** The algorithm that enforces the limit. */
  readonly algorithm: Algorithm
  /** Units per `perUs`. */
  readonly limit: number
  /** The time of `limit` units, in microseconds. */
  readonly perUs: number
  /** The most units that can ever remain; a larger cost can never pass. */
  readonly capacity: number
  /** All parameters of the algorithm, such as `{ align: 'clock' }`. */
  readonly params: Params
  /**
   * The rule as text for `parseRule`, without `name` and `by`: `'100/1m burst 20'`. Rules of the
   * same text decide alike, in every process.
   */
  readonly text: string
  /** The time of one unit, perUs / limit, is exactly `gapUs + gapRest / gapParts`. */
  readonly gapUs: number
  /** The numerator of the fraction of `gapUs`. */
  readonly gapRest: number
  /** The denominator of both fractions. */
  readonly gapParts: number
  /** The time of a whole capacity is exactly `fullUs + fullRest / gapParts`. */
  readonly fullUs: number
  /** The numerator of the fraction of `fullUs`. */
  readonly fullRest: number
}

/** fieldsIn returns the fields of a key that rules count, in order of first use. */
export function fieldsIn(rules: readonly Rule[]): readonly string[] {
  const fields = new Set<string>()
  for (const { by } of rules) if (by !== undefined) fields.add(by)
  return [...fields]
}

const DAY_MS = 86_400_000
const NAME = /^[\x20-\x7e]{1,64}$/
const FIELD = /^[\x21-\x7e]{1,64}$/

/** checkName throws unless `name` is 1 to 64 printable ASCII characters: it goes into headers. */
export function checkName(what: string, name: unknown, pattern = NAME): asserts name is string {
  if (typeof name === 'string' && pattern.test(name)) return
  const rest = pattern === NAME ? '' : ' without spaces'
  throw new SluiceError(
    'SLUICE_RULE_NAME',
    `${what} must be 1 to 64 printable ASCII characters${rest}, got ${shown(name)}.`,
  )
}

/** checkBy throws unless `by` is undefined, or 1 to 64 printable ASCII characters without spaces. */
export function checkBy(what: string, by: unknown): asserts by is string | undefined {
  if (by !== undefined) checkName(what, by, FIELD)
}

/**
 * defineRule creates a rule of any algorithm. It checks the options, including the algorithm's
 * parameters, and throws a `SluiceError` that names the rule.
 */
export function defineRule(
  algorithm: Algorithm,
  // For an algorithm with `periods`, `per` is one of their words.
  options: Omit<RuleOptions, 'per'> & { readonly per: Duration | string },
): Rule {
  if (typeof algorithm?.waitUs !== 'function') {
    throw new SluiceError(
      'SLUICE_OPTION',
      `defineRule: the first argument must be an algorithm, got ${shown(algorithm)}. ` +
        'Make one with defineAlgorithm().',
    )
  }
  const where = `${algorithm.name} rule`
  const { span } = algorithm
  checkOptions(where, options, ['limit', span, 'name', 'by', ...Object.keys(algorithm.params)])
  const { limit, name = algorithm.name, by } = options
  const per = (options as unknown as Record<string, unknown>)[span]
  checkName(`${where}: name`, name)
  checkBy(`rule "${name}": by`, by)
  checkWhole(
    `rule "${name}": limit`,
    limit,
    1,
    algorithm.mostLimit,
    'SLUICE_RULE_LIMIT',
    limitRemedy(algorithm, limit),
  )
  const perUs = perUsOf(algorithm, `rule "${name}": ${span}`, per)
  const params = paramsOf(algorithm, options, name)
  const capacity = algorithm.capacity(limit, params)
  checkWhole(`rule "${name}": capacity`, capacity, 1, MOST_UNITS + 1)
  const rule = completeRule(algorithm, { name, by, limit, perUs, capacity, params })
  if (rule.fullUs <= CENTURY_US) return rule
  throw new SluiceError(
    'SLUICE_RULE_RANGE',
    `rule "${name}": ${capacity} units at ${limit} per ${shown(per)} would take more than ` +
      '100 years to become fresh. Lower the burst or queue, or raise the rate.',
  )
}

/** Returns the advice in the error about an invalid limit. */
function limitRemedy({ mostLimit, mostLimitRemedy }: Algorithm, limit: unknown): string {
  const isNumber = typeof limit === 'number'
  if (isNumber && limit > mostLimit && mostLimitRemedy) return mostLimitRemedy
  if (isNumber && limit % 1 > 0) return 'For a fraction of a unit, take a longer time.'
  return 'For no limit, use unlimited(); to refuse a key, block() it.'
}

function perUsOf({ periods }: Algorithm, where: string, per: unknown): number {
  if (!periods) return durationUs(where, per, 1, 400 * DAY_MS)
  if (typeof per === 'string' && Object.hasOwn(periods, per)) return periods[per]
  const list = Object.keys(periods).map((period) => `'${period}'`)
  throw new SluiceError(
    'SLUICE_DURATION',
    `${where} must be ${list.join(' or ')}, got ${shown(per)}.`,
  )
}

/** Reads each parameter of the algorithm once, and fills in defaults. */
function paramsOf(
  algorithm: Algorithm,
  options: Omit<RuleOptions, 'per'> & { readonly per: number | string },
  name: string,
): Params {
  const params: Record<string, number | string> = algorithm.periods ? { per: options.per } : {}
  for (const [key, param] of Object.entries(algorithm.params)) {
    const given = (options as unknown as Record<string, unknown>)[key]
    const where = `rule "${name}": ${key}`
    const value =
      given === undefined ? param.fallback(options.limit) : param.check(where, given, params)
    checkWord(where, value)
    params[key] = value
  }
  return Object.freeze(params)
}

/** Checks a parameter's value: it is part of the rule's text, which rows of remote stores contain. */
function checkWord(where: string, value: unknown): void {
  if (FIELD.test(String(value))) return
  throw new SluiceError(
    'SLUICE_OPTION',
    `${where} must be a number or a word of 1 to 64 printable ASCII characters, got ${shown(value)}.`,
  )
}

/** Computes the exact times of a unit and of a whole capacity. */
function completeRule(
  algorithm: Algorithm,
  given: Pick<Rule, 'name' | 'by' | 'limit' | 'perUs' | 'capacity' | 'params'>,
): Rule {
  const { name, by, limit, perUs, capacity, params } = given
  const divisor = gcd(limit, perUs)
  const gapParts = limit / divisor
  const gapUs = Math.floor(perUs / limit)
  const gapRest = (perUs % limit) / divisor
  const carried = mulDiv(capacity, gapRest, gapParts)
  return Object.freeze({
    name,
    by,
    algorithm,
    limit,
    perUs,
    capacity,
    params,
    text: writeRule(algorithm, limit, perUs, params),
    gapUs,
    gapRest,
    gapParts,
    fullUs: capacity * gapUs + carried,
    fullRest: mulSub(capacity, gapRest, carried, gapParts),
  })
}

/**
 * ByOf is the type of `by` in a rule's options, and NameOf that of `name`, so that misspelt ones do
 * not compile.
 */
export type ByOf<O> = O extends { readonly by: infer By extends string } ? By : undefined
export type NameOf<O, Usual extends string> = O extends { readonly name: infer N extends string }
  ? N
  : Usual

/** RuleFactory creates rules of one algorithm, which is its property `algorithm`. */
export interface RuleFactory<
  Options extends Omit<RuleOptions, 'per'> = RuleOptions,
  Usual extends string = string,
> {
  /** Creates a rule. An unknown option does not compile. */
  <const O extends Options>(
    options: O & Readonly<Record<Exclude<keyof O, keyof Options>, never>>,
  ): Rule<ByOf<O>, NameOf<O, Usual>>
  /** The algorithm of its rules. */
  readonly algorithm: Algorithm
}

/**
 * ruleFactory creates the factory for an algorithm's rules. `Usual` is the type of their default
 * name.
 */
export function ruleFactory<
  Options extends Omit<RuleOptions, 'per'> = RuleOptions,
  Usual extends string = string,
>(algorithm: Algorithm): RuleFactory<Options, Usual> {
  const factory = (options: Options) => defineRule(algorithm, options as never)
  return Object.assign(factory, { algorithm }) as never
}
