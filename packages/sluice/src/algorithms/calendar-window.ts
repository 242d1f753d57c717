import { completeAlgorithm, RECENT } from '../core/algorithm.ts'
import { MOST_COUNT } from '../core/exact.ts'
import { type Rule, type RuleOptions, ruleFactory } from '../core/rule.ts'
import { type Calendar, createCalendar } from './calendar.ts'
import { startsOnParam } from './starts-on.ts'
import { zoneParam } from './zone.ts'

/** What `calendarWindow` takes. */
export interface CalendarOptions extends Omit<RuleOptions, 'per'> {
  /** The calendar period. */
  readonly per: 'hour' | 'day' | 'week' | 'month' | 'year'
  /** The time zone that has the calendar, by its IANA name: `'Europe/Berlin'`. Default `'UTC'`. */
  readonly zone?: string
  /**
   * The first day of a period. Of a week: 1, Monday, to 7, Sunday. Of a month: 1 to 31, which stands
   * for the last day of a shorter month. Of a year: month and day, `'04-06'`; `'02-29'` is 28 February
   * in other years. Default: Monday, the first of the month, 1 January. Hours and days have none.
   */
  readonly startsOn?: number | string
}

const HOUR_US = 3_600_000_000
const DAY_US = 24 * HOUR_US

/** How long periods are in UTC; in other zones a few are longer, which only their edges tell. */
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
 * By how much a period may be shorter in other zones. Offsets are quarters of an hour, clocks are set
 * forward by up to seven hours, and a country that crosses the date line loses a day.
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

  // What counts now counts in the other period that is open now. Where time has stepped back to
  // before the state's own period, now is the end of that: the later edge frees nothing early.
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

/** Units used in the period that is open; 0 when it has ended. Nothing opens before its end. */
function usedIn(cells: Float64Array, at: number, nowUs: number): number {
  return nowUs < cells[at] ? cells[at + 1] : 0
}

function leastUs({ params: { per, zone } }: Rule): number {
  return shortestUs[per] - (zone === 'UTC' ? 0 : lostUs[per])
}

const calendars = new Map<string, Calendar>()
const calendarsOfRules = new WeakMap<Rule, Calendar>()

/** The calendar of a rule; alike rules have the same. */
function calendarOf(rule: Rule): Calendar {
  return calendarsOfRules.get(rule) ?? newCalendar(rule)
}

/**
 * The rule of one of many nodes may have a longer `perUs`, since it has at least one unit: it skips as
 * many periods.
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
 * calendarWindow admits `limit` units per hour, day, week, month or year of the calendar in any time
 * zone, daylight saving included: quotas as they stand in a contract. Up to twice the limit may pass
 * in a short time across the edge of two periods. `perUs` of its rules is the longest such period in
 * UTC: 31 and 366 days.
 */
export const calendarWindow = ruleFactory<CalendarOptions, 'calendar-window'>(algorithm)
