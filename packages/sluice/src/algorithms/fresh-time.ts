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
 * freshTime is the arithmetic that token bucket, GCRA and leaky bucket share. The whole state is the
 * instant at which the bucket is fresh: full again, or drained. Each unit moves that instant one gap
 * (perUs / limit) into the future. A cost passes if the instant then lies at most capacity · gap
 * ahead.
 *
 * Cells: whole microseconds, and a numerator over `gapParts` if the gap is not a whole number of
 * microseconds. So every rate is exact and nothing drifts.
 */
export const freshTime: FreshTime = {
  flows: true,
  instant: true,
  cells: (rule) => (rule.gapParts === 1 ? 1 : 2),

  // Hot path: functions marked "Short" stay small enough for V8 to inline.
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

  // Units that have refilled since the spend are not given back a second time.
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

  // Used units = time to fresh / gap, so the time scales by the ratio of the gaps. BigInt is fine
  // here: rules rarely change. Rounds up, so that switching back and forth frees nothing.
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

/** bucket is everything that token bucket and GCRA share: all but their names. */
export const bucket = {
  ...freshTime,
  params: { burst: wholeParam({ least: 1, code: 'SLUICE_RULE_BURST' }) },
  capacity: (_limit, { burst }) => Number(burst),
  lease: 'always',
  lua: 'bucket',
} satisfies Partial<Algorithm>

const takeParts = takeBy(freshTime)

/** Adds the fractions to `ahead`, the wait in whole microseconds, and returns the wait rounded up. */
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

/** Computes `remaining` for a gap that is not a whole number of microseconds. */
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

/** lineEndUs returns the microseconds until `units` more have refilled. Never too many. */
export function lineEndUs(rule: Rule, resetUs: number, units: number): number {
  if (rule.gapParts === 1) return resetUs + units * rule.gapUs
  // Subtract 1: `resetUs` was rounded up. A wait queue may hold more units than a counter.
  const carried = mulDiv(Math.min(units, MOST_COUNT), rule.gapRest, rule.gapParts)
  return resetUs - 1 + units * rule.gapUs + carried
}

/** Tells whether `units` gaps take at most `left + rest / gapParts` microseconds. */
function fits(units: number, left: number, rest: number, rule: Rule): boolean {
  const carried = mulDiv(units, rule.gapRest, rule.gapParts)
  const whole = units * rule.gapUs + carried
  if (whole !== left) return whole < left
  return mulSub(units, rule.gapRest, carried, rule.gapParts) <= rest
}

/** Larger numerators are carried into microseconds before an addition, so sums stay below 2^53. */
const MOST_PARTS = 2 ** 52

/**
 * Returns the whole microseconds in the fractions of `units` gaps if their sum exceeds MOST_PARTS,
 * else 0. May be one off; `partsOf` makes up for it.
 */
function carriedOf(units: number, rule: Rule): number {
  const parts = units * rule.gapRest
  return parts <= MOST_PARTS ? 0 : Math.floor(parts / rule.gapParts)
}

/** Returns the numerator that `carriedOf` leaves. Exact; from −gapParts to 2 · gapParts. */
function partsOf(units: number, rule: Rule): number {
  const parts = units * rule.gapRest
  if (parts <= MOST_PARTS) return parts
  return mulSub(units, rule.gapRest, carriedOf(units, rule), rule.gapParts)
}

function gapNumerator(rule: Rule): bigint {
  return BigInt(rule.gapUs) * BigInt(rule.gapParts) + BigInt(rule.gapRest)
}

/** Caps debt at a hundred years, so that times stay exact in a double. */
function stopAtCentury(cells: Float64Array, at: number, rule: Rule, nowUs: number): void {
  cells[at] = nowUs + CENTURY_US
  if (rule.gapParts !== 1) cells[at + 1] = 0
}
