import { checkWhole } from './options.ts'

/** MOST_UNITS is the largest limit, burst, queue or cost. */
export const MOST_UNITS = 1_000_000_000_000

/**
 * Cost is units for all rules, or units per rule in the order of the rules. For a single rule it is
 * always a number, which keeps fast paths simple.
 */
export type Cost = number | readonly number[]

/** costAt returns the units of rule `i`. */
export function costAt(cost: Cost, i: number): number {
  return typeof cost === 'number' ? cost : cost[i]
}

/** costsAny tells whether a cost has any units. */
export function costsAny(cost: Cost): boolean {
  return typeof cost === 'number' ? cost > 0 : cost.some((units) => units > 0)
}

/** fits tells whether rules could ever admit a cost. `capacity` is their smallest capacity. */
export function fits(
  cost: Cost,
  { capacity, rules }: { capacity: number; rules: readonly { capacity: number }[] },
): boolean {
  if (typeof cost === 'number') return cost <= capacity
  return cost.every((units, i) => units <= rules[i].capacity)
}

/** isSameCost tells whether two costs are the same in every rule. */
export function isSameCost(one: Cost, other: Cost): boolean {
  if (typeof one === 'number' || typeof other === 'number') return one === other
  return one.every((units, i) => units === other[i])
}

/** checkCost throws unless `cost` is a whole number from 0 to 10^12. */
export function checkCost(cost: unknown): asserts cost is number {
  // The comparison with NaN, Infinity and fractions fails by itself; this is the hot path.
  if (typeof cost === 'number' && cost >= 0 && cost <= MOST_UNITS && Math.floor(cost) === cost) {
    return
  }
  let remedy = ''
  if (typeof cost === 'object') remedy = 'Options are the third argument.'
  else if (typeof cost === 'number' && cost < 0)
    remedy = 'To give units back, call refund() with a positive number.'
  checkWhole('cost', cost, 0, MOST_UNITS, 'SLUICE_COST', remedy)
}
