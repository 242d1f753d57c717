import { calendarWindow } from '../algorithms/calendar-window.ts'
import type { Trace } from './trace.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

/** 2100-01-01 is a Friday, and 2100 no leap year, as 2104 is. Days after it, by the calendar: */
const START_2100 = '2100-01-01T00:00:00Z'
const FEBRUARY_2100 = 31 * DAY
const MARCH_2100 = FEBRUARY_2100 + 28 * DAY
const YEAR_2101 = 365 * DAY
const YEAR_2104 = 4 * 365 * DAY
const FEBRUARY_2104 = YEAR_2104 + 31 * DAY
const MARCH_2104 = FEBRUARY_2104 + 29 * DAY
const YEAR_2105 = YEAR_2104 + 366 * DAY

/** calendarTraces are the hand-written behaviours of the calendar window. */
export const calendarTraces: readonly Trace[] = [
  {
    name: 'counts by the month, from its first microsecond to its last',
    rule: calendarWindow({ limit: 3, per: 'month' }),
    start: START_2100,
    lines: [
      [10 * DAY, 3, true, 0, 0],
      [10 * DAY, 1, false, 0, 21 * DAY],
      [FEBRUARY_2100 - 0.001, 1, false, 0, 0.001],
      [FEBRUARY_2100, 2, true, 1, 0],
      [FEBRUARY_2100, 2, false, 1, 28 * DAY],
      [MARCH_2100 - 0.001, 2, false, 1, 0.001],
      [MARCH_2100 - 0.001, 1, true, 0, 0],
      [MARCH_2100, 3, true, 0, 0],
      [MARCH_2100, 1, false, 0, 31 * DAY],
    ],
  },
  {
    name: 'gives February 28 days in 2100, and 29 in a leap year',
    rule: calendarWindow({ limit: 1, per: 'month' }),
    start: START_2100,
    lines: [
      [FEBRUARY_2100, 1, true, 0, 0],
      [FEBRUARY_2100, 1, false, 0, 28 * DAY],
      [MARCH_2100 - 0.001, 1, false, 0, 0.001],
      [MARCH_2100, 1, true, 0, 0],
      [FEBRUARY_2104, 1, true, 0, 0],
      [FEBRUARY_2104, 1, false, 0, 29 * DAY],
      [MARCH_2104 - DAY, 1, false, 0, DAY],
      [MARCH_2104 - 0.001, 1, false, 0, 0.001],
      [MARCH_2104, 1, true, 0, 0],
    ],
  },
  {
    name: 'ends a year with 31 December, leap or not',
    rule: calendarWindow({ limit: 1, per: 'year' }),
    start: START_2100,
    lines: [
      [YEAR_2101 - DAY, 1, true, 0, 0],
      [YEAR_2101 - DAY, 1, false, 0, DAY],
      [YEAR_2101 - 0.001, 1, false, 0, 0.001],
      [YEAR_2101, 1, true, 0, 0],
      [YEAR_2101, 1, false, 0, 365 * DAY],
      [YEAR_2104, 1, true, 0, 0],
      [YEAR_2104, 1, false, 0, 366 * DAY],
      [YEAR_2105 - 0.001, 1, false, 0, 0.001],
      [YEAR_2105, 1, true, 0, 0],
    ],
  },
  {
    name: 'begins weeks on Monday',
    rule: calendarWindow({ limit: 2, per: 'week' }),
    start: START_2100,
    lines: [
      [0, 2, true, 0, 0],
      [0, 1, false, 0, 3 * DAY],
      [3 * DAY - 0.001, 1, false, 0, 0.001],
      [3 * DAY, 2, true, 0, 0],
      [3 * DAY, 1, false, 0, 7 * DAY],
      [9 * DAY, 1, false, 0, DAY],
      [10 * DAY - 0.001, 1, false, 0, 0.001],
      [10 * DAY, 1, true, 1, 0],
    ],
  },
  {
    name: 'begins days at midnight UTC',
    rule: calendarWindow({ limit: 2, per: 'day' }),
    start: START_2100,
    lines: [
      [9 * HOUR, 2, true, 0, 0],
      [9 * HOUR, 1, false, 0, 15 * HOUR],
      [DAY - 0.001, 1, false, 0, 0.001],
      [DAY, 2, true, 0, 0],
    ],
  },
  {
    name: 'begins hours with the full one',
    rule: calendarWindow({ limit: 2, per: 'hour' }),
    start: START_2100,
    lines: [
      [HOUR / 4, 2, true, 0, 0],
      [HOUR / 4, 1, false, 0, 0.75 * HOUR],
      [HOUR - 0.001, 1, false, 0, 0.001],
      [HOUR, 1, true, 1, 0],
    ],
  },
]
