import { MOST_UNITS } from '../core/cost.ts'
import { SluiceError, shown } from '../core/errors.ts'
import { isLater, type Later } from '../core/later.ts'
import { checkWhole } from '../core/options.ts'
import type { Rule } from '../core/rule.ts'
import type { CostByRule } from '../limiter/key-types.ts'

/** RequestCost is the cost of a request: units for all rules, or units per rule name. */
export type RequestCost = number | CostByRule

/**
 * CostOption is the option `cost`: a cost, or functions of the request that return it or its parts.
 */
export type CostOption<Request> =
  | number
  | ((request: Request) => Later<RequestCost>)
  | Readonly<Record<string, number | ((request: Request) => Later<number>)>>

/** costOption checks the option, and returns a cost or one function of the request. */
export function costOption<Request>(
  cost: CostOption<Request>,
): RequestCost | ((request: Request) => Later<RequestCost>) {
  if (typeof cost === 'function') return cost
  if (typeof cost !== 'object' || shown(cost) !== 'an object') {
    return checkWhole('rateLimit: cost', cost, 0, MOST_UNITS)
  }
  const parts = Object.entries(cost)
  for (const [name, part] of parts) {
    if (typeof part === 'function') continue
    checkWhole(`rateLimit: cost of ${shown(name)}`, part, 0, MOST_UNITS)
  }
  if (parts.every(([, part]) => typeof part === 'number')) return { ...(cost as CostByRule) }
  return (request) => {
    const units = parts.map(([, part]) => (typeof part === 'function' ? part(request) : part))
    const named = (all: readonly number[]) =>
      Object.fromEntries(parts.map(([name], i) => [name, all[i]]))
    return units.some(isLater) ? Promise.all(units).then(named) : named(units as number[])
  }
}

/** Tells whether a cost has units for a rule. */
function isNamed({ name, capacity }: Rule, cost: RequestCost): boolean {
  if (typeof cost === 'number' || capacity === Number.POSITIVE_INFINITY) return true
  return Object.hasOwn(cost, name)
}

/** unitsFor returns a cost's units for a rule; 0 if it has none. */
export function unitsFor(cost: RequestCost, { name }: Rule): number {
  if (typeof cost === 'number') return cost
  return Object.hasOwn(cost, name) ? cost[name] : 0
}

/**
 * isTooMuch tells whether an error is due to a cost that can never pass, rather than to a bug. Such
 * a cost may exceed what a limiter accepts, such as the Content-Length that a client announces.
 */
export function isTooMuch(error: unknown, cost: RequestCost, rules: readonly Rule[]): boolean {
  if (!SluiceError.is(error)) return false
  if (error.code === 'SLUICE_COST_EXCEEDS_CAPACITY') return true
  if (error.code !== 'SLUICE_COST' || !rules.every((rule) => isNamed(rule, cost))) return false
  const units: readonly unknown[] = typeof cost === 'number' ? [cost] : Object.values(cost)
  return units.every(isWhole) && units.some((each) => (each as number) > MOST_UNITS)
}

/**
 * finalOf returns the cost to settle: the result of `finalCost`, the `estimate` for rules that it
 * leaves out, and at most what a limiter accepts. With `mayRefund` false it is at least the
 * estimate.
 */
export function finalOf(
  final: RequestCost,
  estimate: RequestCost,
  rules: readonly Rule[],
  mayRefund: boolean,
): RequestCost {
  const bounded = (units: unknown, least: number) => {
    if (!isWhole(units)) throw wrongFinal(units)
    return Math.min(Math.max(units, mayRefund ? 0 : least), MOST_UNITS)
  }
  if (typeof final === 'number' && typeof estimate === 'number') return bounded(final, estimate)
  const own = typeof final === 'number' ? {} : final
  if (typeof final !== 'number' && !isNonempty(final)) throw wrongFinal(final)
  // Keep unknown names, so that the limiter reports them.
  const units: Record<string, number> = { ...own }
  for (const rule of rules) {
    const before = unitsFor(estimate, rule)
    const { name } = rule
    const given = typeof final === 'number' ? final : Object.hasOwn(own, name) ? own[name] : before
    units[name] = bounded(given, before)
  }
  return units
}

function isNonempty(object: unknown): boolean {
  return shown(object) === 'an object' && Object.keys(object as object).length > 0
}

function isWhole(units: unknown): units is number {
  return Number.isInteger(units) && (units as number) >= 0
}

function wrongFinal(given: unknown): SluiceError {
  return new SluiceError(
    'SLUICE_COST',
    `rateLimit: finalCost must give a whole number from 0 up, or an object of such, got ${shown(given)}.`,
  )
}
