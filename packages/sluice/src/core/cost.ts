import { checkWhole } from './options.ts'

/** The largest limit, burst, queue or cost. */
export const MOST_UNITS = 10_000_000

/** checkCost throws unless `cost` is a whole number from 0 to 10,000,000. */
export function checkCost(cost: unknown): asserts cost is number {
  // The comparison with NaN, Infinity and fractions fails by itself; this is the hot path.
  if (typeof cost === 'number' && cost >= 0 && cost <= MOST_UNITS && Math.floor(cost) === cost) {
    return
  }
  let remedy = ''
  if (typeof cost === 'object') remedy = 'Options are the third argument.'
  else if (typeof cost === 'number' && cost < 0) remedy = 'To give units back, call refund().'
  checkWhole('cost', cost, 0, MOST_UNITS, 'SLUICE_COST', remedy)
}
