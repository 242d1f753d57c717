import type { Rule, Windows } from 'sluice'

/**
 * Bound is how much a whole fleet may admit for one key in any interval t, where A(t) is what the
 * rule admits in t: A(t + leaseUs) + (nodes / fleetSize) · A(t) + units.
 */
export interface Bound {
  readonly leaseUs: number
  /** The number of nodes that decided locally; 0 if none did. */
  readonly nodes: number
  readonly fleetSize: number
  readonly units: number
}

/** ruleAlone is the bound of the rule itself. */
export const ruleAlone: Bound = { leaseUs: 0, nodes: 0, fleetSize: 1, units: 0 }

/** Intervals longer than this many windows are not checked. */
const MOST_WINDOWS = 200

/**
 * worstExcess returns the most units, over all intervals, by which admissions exceeded the bound;
 * negative if they always stayed below. `instants` has one entry per unit, sorted, in whole
 * microseconds.
 */
export function worstExcess(rule: Rule, bound: Bound, instants: Float64Array): number {
  if (instants.length === 0) return Number.NEGATIVE_INFINITY
  const windows = rule.algorithm.windows?.(rule)
  return windows ? overWindows(rule, bound, instants, windows) : overRate(rule, bound, instants)
}

/**
 * A rate: A(t) = capacity + limit · t / per. The maximum of (units − rate · t) over all intervals
 * is the largest rise of (units so far − rate · instant), which one pass finds, in whole numbers
 * only.
 */
function overRate(rule: Rule, bound: Bound, instants: Float64Array): number {
  const { leaseUs, nodes, fleetSize, units } = bound
  const [limit, per, fleet] = [BigInt(rule.limit), BigInt(rule.perUs), BigInt(fleetSize)]
  const unit = per * fleet
  const slope = limit * (fleet + BigInt(nodes))
  const free =
    BigInt(rule.capacity) * per * (fleet + BigInt(nodes)) +
    limit * BigInt(leaseUs) * fleet +
    BigInt(units) * unit +
    BigInt(leastUnits(rule, bound)) * per
  let lowest = 0n
  let worst = 0n
  for (let i = 0; i < instants.length; i += 1) {
    const height = BigInt(i) * unit - slope * BigInt(instants[i] - instants[0])
    if (i === 0 || height < lowest) lowest = height
    if (height + unit - lowest > worst) worst = height + unit - lowest
  }
  return Number(worst - free) / Number(unit)
}

/**
 * Every node has at least one unit: the excess over its share, for all nodes, times `fleetSize`.
 */
function leastUnits({ capacity }: Rule, { nodes, fleetSize }: Bound): number {
  return nodes * Math.max(0, fleetSize - capacity)
}

/** How many windows an interval of that length can touch, both ends included. */
function countIn({ leastUs, edges }: Windows, us: number): number {
  if (!edges) return Math.floor(us / leastUs) + 1
  return us === 0 ? 1 : Math.ceil(us / leastUs) + 1
}

/**
 * For each length just below a rise of the bound, the most units in any interval of that length.
 */
function overWindows(rule: Rule, bound: Bound, instants: Float64Array, windows: Windows): number {
  const { leaseUs, nodes, fleetSize, units } = bound
  const wholeUs = instants[instants.length - 1] - instants[0]
  const admitted = (us: number) => windows.units * countIn(windows, us)
  const free = units + leastUnits(rule, bound) / fleetSize
  let worst = Number.NEGATIVE_INFINITY
  for (const us of lengths(windows, leaseUs, wholeUs)) {
    const most = admitted(us + leaseUs) + (nodes / fleetSize) * admitted(us) + free
    worst = Math.max(worst, mostIn(instants, us) - most)
  }
  return worst
}

/** The last lengths before, and at, a multiple of a window, with and without the lease. */
function lengths({ leastUs }: Windows, leaseUs: number, wholeUs: number): Set<number> {
  const found = new Set<number>([0])
  for (let i = 1; i <= MOST_WINDOWS && (i - 1) * leastUs <= wholeUs + leaseUs; i += 1) {
    for (const us of [i * leastUs, i * leastUs - leaseUs]) {
      if (us >= 0) found.add(us)
      if (us >= 1) found.add(us - 1)
    }
  }
  return found
}

/** The most units in any interval of that length, both ends included. */
function mostIn(instants: Float64Array, us: number): number {
  let first = 0
  let most = 0
  for (let i = 0; i < instants.length; i += 1) {
    while (instants[i] - instants[first] > us) first += 1
    most = Math.max(most, i - first + 1)
  }
  return most
}
