import { type Algorithm, takeBy } from '../core/algorithm.ts'
import { CENTURY_US } from '../core/duration.ts'
import { MOST_COUNT, mulDiv, mulSub } from '../core/exact.ts'
import { wholeParam } from '../core/params.ts'
import type { Rule } from '../core/rule.ts'

type FreshTime = Pick<
  Algorithm,
  | 'flows'
  | 'instant'
  | 'cells'
  | 'waitUs'
  | 'take'
  | 'spend'
  | 'refund'
  | 'remaining'
  | 'freshAtUs'
  | 'carry'
  | 'merge'
  | 'lineUs'
>

/**
 * freshTime is the arithmetic that token bucket, GCRA and leaky bucket share: the whole state is
 * the instant at which the bucket will be fresh (full, or drained), and each unit moves it one gap
 * (perUs / limit) into the future. A cost passes when the instant would then lie at most
 * capacity · gap ahead.
 *
 * Cells: whole microseconds, then, only when the gap is not whole, the numerator of a fraction
 * over `gapParts`. So every rate is exact and nothing drifts.
 */
export const freshTime: FreshTime = {
  flows: true,
  instant: true,
  cells: (rule) => (rule.gapParts === 1 ? 1 : 2),

  // Those that say "short" are, so that they are inlined: this is the hot path.
  waitUs(cells, at, rule, cost, nowUs) {
    // Short.
    const freshUs = cells[at]
    const ahead = (freshUs > nowUs ? freshUs - nowUs : 0) + cost * rule.gapUs - rule.fullUs
    if (rule.gapParts !== 1) return waitWithParts(ahead, cells, at, rule, cost, nowUs)
    return ahead > 0 ? ahead : 0
  },

  take(cells, at, rule, cost, nowUs) {
    // Short.
    if (rule.gapParts !== 1) return takeParts(cells, at, rule, cost, nowUs)
    const freshUs = cells[at]
    const sum = (freshUs > nowUs ? freshUs : nowUs) + cost * rule.gapUs
    const wait = sum - nowUs - rule.fullUs
    if (wait > 0) return wait
    if (cost > 0) cells[at] = sum
    return 0
  },

  spend(cells, at, rule, cost, nowUs) {
    const freshUs = cells[at]
    let sum = (freshUs > nowUs ? freshUs : nowUs) + cost * rule.gapUs
    if (rule.gapParts !== 1) {
      const parts = (freshUs >= nowUs ? cells[at + 1] : 0) + partsOf(cost, rule)
      const carried = Math.floor(parts / rule.gapParts)
      sum += carried + carriedOf(cost, rule)
      cells[at + 1] = parts - carried * rule.gapParts
    }
    cells[at] = sum
    if (sum - nowUs >= CENTURY_US) stopAtCentury(cells, at, rule, nowUs)
  },

  // What has refilled since the spend is not given back again.
  refund(cells, at, rule, cost, nowUs, spentUs) {
    if (cells[at] < nowUs) return
    let rest = cells[at] - cost * rule.gapUs + Math.max(0, nowUs - spentUs)
    let parts = 0
    if (rule.gapParts !== 1) {
      parts = cells[at + 1] - partsOf(cost, rule)
      const carried = Math.floor(parts / rule.gapParts)
      rest += carried - carriedOf(cost, rule)
      parts -= carried * rule.gapParts
    }
    if (rest > cells[at] || (rest === cells[at] && parts >= cells[at + 1])) return
    cells[at] = rest < nowUs ? nowUs : rest
    if (rule.gapParts !== 1) cells[at + 1] = rest < nowUs ? 0 : parts
  },

  remaining(cells, at, rule, nowUs) {
    // Short.
    if (rule.gapParts !== 1) return remainingParts(cells, at, rule, nowUs)
    const freshUs = cells[at]
    const left = rule.fullUs - (freshUs > nowUs ? freshUs - nowUs : 0)
    return left > 0 ? Math.floor(left / rule.gapUs) : 0
  },

  freshAtUs(cells, at, rule) {
    return rule.gapParts !== 1 && cells[at + 1] > 0 ? cells[at] + 1 : cells[at]
  },

  lineUs(rule, _waitUs, resetUs, _remaining, ahead, cost) {
    return Math.max(0, lineEndUs(rule, resetUs, ahead + cost) - rule.fullUs)
  },

  // Used units = time to fresh / gap, so the time is stretched by the ratio of the gaps. Rare, so
  // BigInt; rounded up, so that switching back and forth frees nothing.
  carry(cells, at, from, to, nowUs) {
    const sameGap =
      from.gapUs === to.gapUs && from.gapRest === to.gapRest && from.gapParts === to.gapParts
    if (sameGap) return
    const aheadUs = Math.max(0, cells[at] - nowUs)
    const parts = from.gapParts !== 1 && cells[at] >= nowUs ? cells[at + 1] : 0
    const ahead = BigInt(aheadUs) * BigInt(from.gapParts) + BigInt(parts)
    const gap = gapNumerator(from)
    const stretched = (ahead * gapNumerator(to) + gap - 1n) / gap
    const toParts = BigInt(to.gapParts)
    cells[at] = ahead === 0n ? 0 : nowUs + Number(stretched / toParts)
    if (from.gapParts !== 1) cells[at + 1] = 0
    if (to.gapParts !== 1) cells[at + 1] = Number(stretched % toParts)
    if (cells[at] - nowUs >= CENTURY_US) stopAtCentury(cells, at, to, nowUs)
  },

  merge(cells, at, other, otherAt, rule) {
    const earlier = cells[at] < other[otherAt]
    const level = cells[at] === other[otherAt]
    if (rule.gapParts !== 1 && (earlier || (level && cells[at + 1] < other[otherAt + 1]))) {
      cells[at + 1] = other[otherAt + 1]
    }
    if (earlier) cells[at] = other[otherAt]
  },
}

/** bucket is what token bucket and GCRA have in common: all but their names. */
export const bucket = {
  ...freshTime,
  params: { burst: wholeParam({ least: 1, code: 'SLUICE_RULE_BURST' }) },
  capacity: (_limit, { burst }) => Number(burst),
  lease: 'always',
  lua: 'bucket',
} satisfies Partial<Algorithm>

const takeParts = takeBy(freshTime)

/** `waitUs` where the gap is not whole, but for the microseconds that are. */
function waitWithParts(
  ahead: number,
  cells: Float64Array,
  at: number,
  rule: Rule,
  cost: number,
  nowUs: number,
): number {
  const parts = (cells[at] >= nowUs ? cells[at + 1] : 0) + partsOf(cost, rule) - rule.fullRest
  const carried = Math.floor(parts / rule.gapParts)
  const whole = ahead + carried + carriedOf(cost, rule)
  const wait = parts > carried * rule.gapParts ? whole + 1 : whole
  return wait > 0 ? wait : 0
}

/** `remaining` where the gap is not whole. */
function remainingParts(cells: Float64Array, at: number, rule: Rule, nowUs: number): number {
  const freshUs = cells[at]
  let left = rule.fullUs - (freshUs > nowUs ? freshUs - nowUs : 0)
  const parts = rule.fullRest - (freshUs >= nowUs ? cells[at + 1] : 0)
  const rest = parts < 0 ? parts + rule.gapParts : parts
  if (parts < 0) left -= 1
  if (left < 0) return 0
  // At most 10^12 + 1 units, so the quotient of doubles is at most one off; fits() is exact.
  const units = Math.floor(
    (left + rest / rule.gapParts) / (rule.gapUs + rule.gapRest / rule.gapParts),
  )
  if (fits(units + 1, left, rest, rule)) return units + 1
  return fits(units, left, rest, rule) ? units : units - 1
}

/** lineEndUs is when `units` more would be paid off, in microseconds from now; never too late. */
export function lineEndUs(rule: Rule, resetUs: number, units: number): number {
  if (rule.gapParts === 1) return resetUs + units * rule.gapUs
  // `resetUs` was rounded up. A line may hold more units than a counter.
  const carried = mulDiv(Math.min(units, MOST_COUNT), rule.gapRest, rule.gapParts)
  return resetUs - 1 + units * rule.gapUs + carried
}

/** Whether `units` gaps take at most `left + rest / gapParts` microseconds. */
function fits(units: number, left: number, rest: number, rule: Rule): boolean {
  const carried = mulDiv(units, rule.gapRest, rule.gapParts)
  const whole = units * rule.gapUs + carried
  if (whole !== left) return whole < left
  return mulSub(units, rule.gapRest, carried, rule.gapParts) <= rest
}

/** Parts above this are carried into microseconds before others are added: sums stay below 2^53. */
const MOST_PARTS = 2 ** 52

/** The whole microseconds in the parts of so many gaps, perhaps one off, if those are too many. */
function carriedOf(units: number, rule: Rule): number {
  const parts = units * rule.gapRest
  return parts <= MOST_PARTS ? 0 : Math.floor(parts / rule.gapParts)
}

/** The parts of so many gaps that `carriedOf` leaves, exact: from −gapParts to 2 · gapParts. */
function partsOf(units: number, rule: Rule): number {
  const parts = units * rule.gapRest
  if (parts <= MOST_PARTS) return parts
  return mulSub(units, rule.gapRest, carriedOf(units, rule), rule.gapParts)
}

function gapNumerator(rule: Rule): bigint {
  return BigInt(rule.gapUs) * BigInt(rule.gapParts) + BigInt(rule.gapRest)
}

/** Debt beyond a hundred years is a hundred years: times stay exact in a double. */
function stopAtCentury(cells: Float64Array, at: number, rule: Rule, nowUs: number): void {
  cells[at] = nowUs + CENTURY_US
  if (rule.gapParts !== 1) cells[at + 1] = 0
}
