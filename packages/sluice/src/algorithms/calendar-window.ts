import { completeAlgorithm, RECENT } from '../core/algorithm.ts'
import { MOST_COUNT } from '../core/exact.ts'
import { type Rule, type RuleOptions, ruleFactory } from '../core/rule.ts'

/** What `calendarWindow` takes. */
export interface CalendarOptions extends RuleOptions {
  /** The calendar period, in UTC. Weeks are those of ISO 8601: they start on Monday. */
  readonly per: 'hour' | 'day' | 'week' | 'month' | 'year'
}

const HOUR_US = 3_600_000_000
const DAY_US = 24 * HOUR_US

/** Days from 0000-03-01 to 1970-01-01, in the Gregorian calendar. */
const EPOCH_DAYS = 719_468

/** Months from March on: January is the tenth, so that a leap day ends the year it is in. */
const JANUARY = 10

const longestUs: Readonly<Record<string, number>> = {
  hour: HOUR_US,
  day: DAY_US,
  week: 7 * DAY_US,
  month: 31 * DAY_US,
  year: 366 * DAY_US,
}

/** The others are always as long. */
const shortestUs: Readonly<Record<string, number>> = { month: 28 * DAY_US, year: 365 * DAY_US }

/** Cells: the microsecond at which the period ends, and the units used in it. */
const algorithm = completeAlgorithm({
  name: 'calendar-window',
  code: 'D',
  periods: longestUs,
  lease: 'window',
  windows: (rule) => ({ units: rule.limit, leastUs: leastUs(rule), edges: true }),
  lua: 'calendar-window',
  cells: () => 2,

  waitUs(cells, at, rule, cost, nowUs) {
    return usedIn(cells, at, nowUs) + cost <= rule.limit ? 0 : cells[at] - nowUs
  },

  spend(cells, at, rule, cost, nowUs) {
    const used = usedIn(cells, at, nowUs)
    if (used === 0) cells[at] = endOf(rule, nowUs)
    cells[at + 1] = Math.min(used + cost, MOST_COUNT)
  },

  refund(cells, at, rule, cost, nowUs, spentUs) {
    if (spentUs !== RECENT && endOf(rule, spentUs) !== cells[at]) return
    cells[at + 1] = Math.max(0, usedIn(cells, at, nowUs) - cost)
  },

  remaining: (cells, at, rule, nowUs) => Math.max(0, rule.limit - usedIn(cells, at, nowUs)),

  freshAtUs: (cells, at) => (cells[at + 1] === 0 ? 0 : cells[at]),

  // What counts now counts in the other period that is open now. Where time has stepped back to
  // before the state's own period, now is the end of that: the later edge frees nothing early.
  carry(cells, at, from, to, nowUs) {
    if (from.params.per === to.params.per) return
    cells[at + 1] = usedIn(cells, at, nowUs)
    if (cells[at + 1] === 0) return
    const isBack = endOf(from, nowUs) < cells[at]
    cells[at] = endOf(to, isBack ? cells[at] - 1 : nowUs)
  },

  merge(cells, at, other, otherAt, _rule, nowUs) {
    const used = Math.max(usedIn(cells, at, nowUs), usedIn(other, otherAt, nowUs))
    cells[at] = Math.max(cells[at], other[otherAt])
    cells[at + 1] = used
  },

  lineUs(rule, _waitUs, resetUs, remaining, ahead, cost) {
    const windows = Math.ceil((ahead + cost - remaining) / rule.limit)
    return windows > 0 ? resetUs + (windows - 1) * leastUs(rule) : 0
  },
})

/** Units used in the period that is open; 0 when it has ended. Nothing opens before its end. */
function usedIn(cells: Float64Array, at: number, nowUs: number): number {
  return nowUs < cells[at] ? cells[at + 1] : 0
}

function leastUs({ params: { per } }: Rule): number {
  return shortestUs[per] ?? longestUs[per]
}

/**
 * The first microsecond of the next period. The rule of one of many nodes may have a longer `perUs`,
 * since it has at least one unit: it skips as many periods.
 */
function endOf({ params: { per }, perUs }: Rule, nowUs: number): number {
  const us = nowUs + (Math.ceil(perUs / longestUs[per]) - 1) * longestUs[per]
  if (per === 'hour') return us - (us % HOUR_US) + HOUR_US
  const day = Math.floor(us / DAY_US)
  if (per === 'day') return (day + 1) * DAY_US
  // 1970-01-01 was a Thursday.
  if (per === 'week') return (day + 7 - ((day + 3) % 7)) * DAY_US
  // By the mean length of a year: at its beginning that may still be the year before.
  let year = Math.floor(((day + EPOCH_DAYS) * 400) / 146_097)
  if (dayOf(year + 1, 0) <= day) year += 1
  const month = Math.floor((5 * (day - dayOf(year, 0)) + 2) / 153)
  if (per === 'month') return dayOf(year, month + 1) * DAY_US
  return dayOf(month < JANUARY ? year : year + 1, JANUARY) * DAY_US
}

/**
 * The first day of a month, counted from 1970. Years begin in March, which is month 0, so months
 * of 31 and 30 days alternate in fives: 153 days each.
 */
function dayOf(year: number, month: number): number {
  const years = month < 12 ? year : year + 1
  const leapDays = Math.floor(years / 4) - Math.floor(years / 100) + Math.floor(years / 400)
  return 365 * years + leapDays + Math.floor((153 * (month % 12) + 2) / 5) - EPOCH_DAYS
}

/**
 * calendarWindow admits `limit` units per hour, day, week, month or year of the calendar, in UTC:
 * quotas as they stand in a contract. Up to twice the limit may pass in a short time across the
 * edge of two periods. `perUs` of its rules is the longest such period: 31 and 366 days.
 */
export const calendarWindow = ruleFactory<CalendarOptions, 'calendar-window'>(algorithm)
