import { completeAlgorithm, RECENT } from '../core/algorithm.ts'
import { MOST_COUNT } from '../core/exact.ts'
import { type Rule, type RuleOptions, ruleFactory } from '../core/rule.ts'
import { type Calendar, createCalendar } from './calendar.ts'
import { startsOnParam } from './starts-on.ts'
import { zoneParam } from './zone.ts'

/** CalendarOptions are the options of `calendarWindow`. */
export interface CalendarOptions extends Omit<RuleOptions, 'per'> {
  /** The calendar period. */
  readonly per: 'hour' | 'day' | 'week' | 'month' | 'year'
  /** The time zone of the calendar by its IANA name, such as `'Europe/Berlin'`. Default: `'UTC'`. */
  readonly zone?: string
  /**
   * The first day of a period. Weeks: 1 (Monday) to 7 (Sunday), default Monday. Months: 1 to 31,
   * default 1; a shorter month starts on its last day instead. Years: month and day such as
   * `'04-06'`, default 1 January; `'02-29'` means 28 February outside leap years. Hours and days
   * take no `startsOn`.
   */
  readonly startsOn?: number | string
}

const HOUR_US = 3_600_000_000
const DAY_US = 24 * HOUR_US

/** The longest period in UTC. Other zones have a few longer ones; `edgesAround` gives their edges. */
const longestUs: Readonly<Record<string, number>> = {
  hour: HOUR_US,
  day: DAY_US,
  week: 7 * DAY_US,
  month: 31 * DAY_US,
  year: 366 * DAY_US,
}

const shortestUs: Readonly<Record<string, number>> = {
  ...longestUs,
  month: 28 * DAY_US,
  year: 365 * DAY_US,
}

/**
 * How much shorter a period may be in zones other than UTC. Offsets are multiples of 15 minutes,
 * clocks are set forward by up to seven hours, and a country that crosses the date line loses a day.
 */
const lostUs: Readonly<Record<string, number>> = {
  hour: HOUR_US * 0.75,
  day: HOUR_US * 7,
  week: HOUR_US * 31,
  month: HOUR_US * 31,
  year: HOUR_US * 31,
}

/** Cells: the microsecond at which the period ends, and the units used in it. */
const algorithm = completeAlgorithm({
  name: 'calendar-window',
  code: 'D',
  params: { zone: zoneParam, startsOn: startsOnParam },
  periods: longestUs,
  lease: 'window',
  windows: (rule) => ({
    units: rule.limit,
    leastUs: leastUs(rule),
    edges: true,
    edgesAround: calendarOf(rule).edgesAround,
  }),
  lua: 'calendar-window',
  cells: () => 2,

  waitUs(cells, at, rule, cost, nowUs) {
    return usedIn(cells, at, nowUs) + cost <= rule.limit ? 0 : cells[at] - nowUs
  },

  spend(cells, at, rule, cost, nowUs) {
    const used = usedIn(cells, at, nowUs)
    if (used === 0) cells[at] = calendarOf(rule).endUs(nowUs)
    cells[at + 1] = Math.min(used + cost, MOST_COUNT)
  },

  refund(cells, at, rule, cost, nowUs, spentUs) {
    if (spentUs !== RECENT && calendarOf(rule).endUs(spentUs) !== cells[at]) return
    cells[at + 1] = Math.max(0, usedIn(cells, at, nowUs) - cost)
  },

  remaining: (cells, at, rule, nowUs) => Math.max(0, rule.limit - usedIn(cells, at, nowUs)),

  freshAtUs: (cells, at) => (cells[at + 1] === 0 ? 0 : cells[at]),

  // Units that count now count in the new rule's current period. If time has stepped back to before
  // the state's own period, the end of that period stands for now, so that nothing is freed early.
  carry(cells, at, from, to, nowUs) {
    if (calendarOf(from) === calendarOf(to)) return
    cells[at + 1] = usedIn(cells, at, nowUs)
    if (cells[at + 1] === 0) return
    const isBack = calendarOf(from).endUs(nowUs) < cells[at]
    cells[at] = calendarOf(to).endUs(isBack ? cells[at] - 1 : nowUs)
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

/** Returns the units used in the open period; 0 once it has ended. No other period opens before. */
function usedIn(cells: Float64Array, at: number, nowUs: number): number {
  return nowUs < cells[at] ? cells[at + 1] : 0
}

function leastUs({ params: { per, zone } }: Rule): number {
  return shortestUs[per] - (zone === 'UTC' ? 0 : lostUs[per])
}

const calendars = new Map<string, Calendar>()
const calendarsOfRules = new WeakMap<Rule, Calendar>()

/** Returns the calendar of a rule. Rules with the same parameters share one. */
function calendarOf(rule: Rule): Calendar {
  return calendarsOfRules.get(rule) ?? newCalendar(rule)
}

/**
 * Creates or shares a calendar. A node's share of a rule has at least one unit; if that is more than
 * its part, the share's `perUs` is longer, and its calendar skips periods accordingly.
 */
function newCalendar(rule: Rule): Calendar {
  const { per, zone, startsOn } = rule.params
  const skipped = Math.ceil(rule.perUs / longestUs[per]) - 1
  const text = `${per} ${zone} ${startsOn} ${skipped}`
  const calendar = calendars.get(text) ?? createCalendar(`${per}`, `${zone}`, startsOn, skipped)
  calendars.set(text, calendar)
  calendarsOfRules.set(rule, calendar)
  return calendar
}

/**
 * calendarWindow admits `limit` units per calendar hour, day, week, month or year in any time zone,
 * daylight saving included: the quotas of contracts. Up to twice the limit may pass in a short time
 * across the edge of two periods. `perUs` of its rules is the longest such period in UTC: 31 days
 * for months, 366 for years.
 */
export const calendarWindow = ruleFactory<CalendarOptions, 'calendar-window'>(algorithm)
