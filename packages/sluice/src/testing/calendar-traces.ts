import { calendarWindow } from '../algorithms/calendar-window.ts'
import type { Trace } from './trace.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

/** 2100-01-01 is a Friday. 2100 is not a leap year, 2104 is. These are days after that date: */
const START_2100 = '2100-01-01T00:00:00Z'
const FEBRUARY_2100 = 31 * DAY
const MARCH_2100 = FEBRUARY_2100 + 28 * DAY
const YEAR_2101 = 365 * DAY
const YEAR_2104 = 4 * 365 * DAY
const FEBRUARY_2104 = YEAR_2104 + 31 * DAY
const MARCH_2104 = FEBRUARY_2104 + 29 * DAY
const YEAR_2105 = YEAR_2104 + 366 * DAY

const inUtc: readonly Trace[] = [
  {
    name: 'counts a month from its first microsecond to its last',
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
    name: 'counts 28 days in February 2100, and 29 in a leap year',
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
    name: 'begins hours on the hour',
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

/**
 * In 2100 clocks are set forward on 14 March in Havana (at midnight) and New York (at two), on 28
 * March in Berlin, and on 3 October on Lord Howe Island (by half an hour). They are set back on 7
 * November, 31 October and 4 April.
 */
const inZones: readonly Trace[] = [
  {
    name: 'has a day of 23 hours when clocks are set forward',
    rule: calendarWindow({ limit: 2, per: 'day', zone: 'Europe/Berlin' }),
    start: '2100-03-27T23:00:00Z',
    lines: [
      [0, 2, true, 0, 0],
      [0, 1, false, 0, 23 * HOUR],
      [3 * HOUR, 1, false, 0, 20 * HOUR],
      [23 * HOUR - 0.001, 1, false, 0, 0.001],
      [23 * HOUR, 2, true, 0, 0],
      [23 * HOUR, 1, false, 0, DAY],
    ],
  },
  {
    name: 'has a day of 25 hours when clocks are set back',
    rule: calendarWindow({ limit: 2, per: 'day', zone: 'Europe/Berlin' }),
    start: '2100-10-30T22:00:00Z',
    lines: [
      [0, 2, true, 0, 0],
      [0, 1, false, 0, 25 * HOUR],
      [DAY, 1, false, 0, HOUR],
      [25 * HOUR - 0.001, 1, false, 0, 0.001],
      [25 * HOUR, 1, true, 1, 0],
      [25 * HOUR, 2, false, 1, DAY],
    ],
  },
  {
    name: 'begins a day without a midnight at the end of the gap',
    rule: calendarWindow({ limit: 1, per: 'day', zone: 'America/Havana' }),
    start: '2100-03-14T04:00:00Z',
    lines: [
      [0, 1, true, 0, 0],
      [0, 1, false, 0, HOUR],
      [HOUR - 0.001, 1, false, 0, 0.001],
      [HOUR, 1, true, 0, 0],
      [HOUR, 1, false, 0, 23 * HOUR],
      [DAY, 1, true, 0, 0],
    ],
  },
  {
    name: 'begins a day with two midnights at the first',
    rule: calendarWindow({ limit: 1, per: 'day', zone: 'America/Havana' }),
    start: '2100-11-07T03:00:00Z',
    lines: [
      [0, 1, true, 0, 0],
      [HOUR - 0.001, 1, false, 0, 0.001],
      [HOUR, 1, true, 0, 0],
      [2 * HOUR, 1, false, 0, DAY],
      [26 * HOUR - 0.001, 1, false, 0, 0.001],
      [26 * HOUR, 1, true, 0, 0],
    ],
  },
  {
    name: 'has an hour of 30 minutes when clocks are set forward by 30',
    rule: calendarWindow({ limit: 1, per: 'hour', zone: 'Australia/Lord_Howe' }),
    start: '2100-10-02T14:30:00Z',
    lines: [
      [0, 1, true, 0, 0],
      [0, 1, false, 0, HOUR],
      [HOUR, 1, true, 0, 0],
      [HOUR, 1, false, 0, HOUR / 2],
      [1.5 * HOUR - 0.001, 1, false, 0, 0.001],
      [1.5 * HOUR, 1, true, 0, 0],
      [1.5 * HOUR, 1, false, 0, HOUR],
    ],
  },
  {
    name: 'has an hour of 90 minutes when clocks are set back by 30',
    rule: calendarWindow({ limit: 1, per: 'hour', zone: 'Australia/Lord_Howe' }),
    start: '2100-04-03T14:00:00Z',
    lines: [
      [0, 1, true, 0, 0],
      [HOUR, 1, false, 0, HOUR / 2],
      [1.5 * HOUR - 0.001, 1, false, 0, 0.001],
      [1.5 * HOUR, 1, true, 0, 0],
    ],
  },
  {
    name: 'begins days at midnight in a zone that is 45 minutes off',
    rule: calendarWindow({ limit: 1, per: 'day', zone: 'Asia/Kathmandu' }),
    start: START_2100,
    lines: [
      [18 * HOUR, 1, true, 0, 0],
      [18 * HOUR, 1, false, 0, HOUR / 4],
      [18.25 * HOUR - 0.001, 1, false, 0, 0.001],
      [18.25 * HOUR, 1, true, 0, 0],
      [18.25 * HOUR, 1, false, 0, DAY],
    ],
  },
  {
    name: 'begins months on the 31st, or the last day of a shorter one',
    rule: calendarWindow({ limit: 1, per: 'month', zone: 'Europe/Berlin', startsOn: 31 }),
    start: '2100-01-30T23:00:00Z',
    lines: [
      [0, 1, true, 0, 0],
      [0, 1, false, 0, 28 * DAY],
      [28 * DAY - 0.001, 1, false, 0, 0.001],
      [28 * DAY, 1, true, 0, 0],
      [28 * DAY, 1, false, 0, 31 * DAY - HOUR],
      [59 * DAY - HOUR - 0.001, 1, false, 0, 0.001],
      [59 * DAY - HOUR, 1, true, 0, 0],
      [59 * DAY - HOUR, 1, false, 0, 30 * DAY],
    ],
  },
  {
    name: 'begins weeks on Sunday if that is their first day',
    rule: calendarWindow({ limit: 1, per: 'week', zone: 'America/New_York', startsOn: 7 }),
    start: '2100-03-14T05:00:00Z',
    lines: [
      [0, 1, true, 0, 0],
      [0, 1, false, 0, 7 * DAY - HOUR],
      [7 * DAY - HOUR - 0.001, 1, false, 0, 0.001],
      [7 * DAY - HOUR, 1, true, 0, 0],
      [7 * DAY - HOUR, 1, false, 0, 7 * DAY],
    ],
  },
  {
    name: 'begins years on 6 April',
    rule: calendarWindow({ limit: 1, per: 'year', zone: 'Europe/London', startsOn: '04-06' }),
    start: '2100-04-05T22:00:00Z',
    lines: [
      [0, 1, true, 0, 0],
      [0, 1, false, 0, HOUR],
      [HOUR, 1, true, 0, 0],
      [HOUR, 1, false, 0, 365 * DAY],
    ],
  },
  {
    name: 'begins years on 29 February, or on the 28th where there is none',
    rule: calendarWindow({ limit: 1, per: 'year', startsOn: '02-29' }),
    start: '2103-02-28T00:00:00Z',
    lines: [
      [0, 1, true, 0, 0],
      [0, 1, false, 0, 366 * DAY],
      [366 * DAY, 1, true, 0, 0],
      [366 * DAY, 1, false, 0, 365 * DAY],
    ],
  },
]

/** calendarTraces specifies the calendar window by hand-written traces. */
export const calendarTraces: readonly Trace[] = [...inUtc, ...inZones]
