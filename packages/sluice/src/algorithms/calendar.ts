import { zoneOf } from './zone.ts'

const HOUR_US = 3_600_000_000
const DAY_US = 24 * HOUR_US

/** 1970-01-05 was a Monday. */
const MONDAY_US = 4 * DAY_US

/**
 * Calendar knows the periods of a time zone. A period begins when clocks first show its first moment
 * or a later one: a skipped midnight at the gap's end, a repeated one at its first occurrence.
 */
export interface Calendar {
  /** The end of the period at an instant, or of one that is `skipped` periods later. */
  endUs(us: number): number
  /** When the period before that of an instant begins, its own begins and ends, and the next ends. */
  edgesAround(us: number): readonly number[]
}

/** Periods are numbered; that of a number begins at a local time. */
interface Periods {
  numberAt(localUs: number): number
  beginUs(number: number): number
}

interface Period {
  readonly number: number
  readonly startUs: number
  readonly endUs: number
  readonly freeUs: number
}

const none: Period = { number: 0, startUs: 0, endUs: 0, freeUs: 0 }

/**
 * createCalendar is the calendar of a `calendarWindow` rule. It remembers the two periods that it was
 * asked for last, so that hardly a call looks into time zone data.
 */
export function createCalendar(
  per: string,
  zoneName: string,
  startsOn: number | string,
  skipped: number,
): Calendar {
  const zone = zoneOf(zoneName)
  const periods = periodsOf(per, startsOn)
  let near = none
  let far = none

  const beginUs = (number: number) => zone.reachedUs(periods.beginUs(number))

  function periodAt(us: number): Period {
    if (us < near.startUs || us >= near.endUs) {
      const isFar = us >= far.startUs && us < far.endUs
      const period = isFar ? far : newPeriod(us)
      far = near
      near = period
    }
    return near
  }

  function newPeriod(us: number): Period {
    let number = periods.numberAt(zone.localUs(us))
    let endUs = beginUs(number + 1)
    // Clocks may have been set back to before an edge that they had passed.
    while (endUs <= us) {
      number += 1
      endUs = beginUs(number + 1)
    }
    const freeUs = skipped > 0 ? beginUs(number + 1 + skipped) : endUs
    return { number, startUs: beginUs(number), endUs, freeUs }
  }

  return {
    endUs: (us) => periodAt(us).freeUs,
    edgesAround(us) {
      const { number, startUs, endUs } = periodAt(us)
      return [beginUs(number - 1), startUs, endUs, beginUs(number + 2)]
    },
  }
}

function periodsOf(per: string, startsOn: number | string): Periods {
  if (per === 'hour') return periodsOfLength(HOUR_US, 0)
  if (per === 'day') return periodsOfLength(DAY_US, 0)
  if (per === 'week') return periodsOfLength(7 * DAY_US, MONDAY_US + (+startsOn - 1) * DAY_US)
  if (per === 'month') return periodsOfMonths(1, 0, +startsOn)
  const [month, day] = startsOn === 1 ? [1, 1] : String(startsOn).split('-').map(Number)
  return periodsOfMonths(12, month - 1, day)
}

function periodsOfLength(us: number, firstUs: number): Periods {
  return {
    numberAt: (localUs) => Math.floor((localUs - firstUs) / us),
    beginUs: (number) => firstUs + number * us,
  }
}

/** Each has `count` months; one begins in month `first` of 1970, from 0 on. */
function periodsOfMonths(count: number, first: number, day: number): Periods {
  function beginUs(number: number): number {
    const month = number * count + first
    // Day 0 of the next month is the last one of this.
    const lastDay = new Date(Date.UTC(1970, month + 1, 0)).getUTCDate()
    return Date.UTC(1970, month, Math.min(day, lastDay)) * 1_000
  }
  return {
    numberAt(localUs) {
      const date = new Date(Math.floor(localUs / 1_000))
      const month = (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth()
      const number = Math.floor((month - first) / count)
      return beginUs(number) <= localUs ? number : number - 1
    },
    beginUs,
  }
}
