import { zoneOf } from './zone.ts'

const HOUR_US = 3_600_000_000
const DAY_US = 24 * HOUR_US

/** 1970-01-05 was a Monday. */
const MONDAY_US = 4 * DAY_US

/**
 * Calendar finds the edges of calendar periods in a time zone. A period begins when clocks first
 * show its first moment or a later one: at the end of the gap if midnight is skipped, and at the
 * first occurrence if midnight repeats.
 */
export interface Calendar {
  /** Returns when the period `skipped` periods after the one at `us` ends. */
  endUs(us: number): number
  /** Returns four edges around `us`: the starts of the previous, own and next period, and its end. */
  edgesAround(us: number): readonly number[]
}

/** Periods numbers the periods of a calendar in local time. */
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
 * createCalendar makes the calendar of a `calendarWindow` rule. It caches the last two periods,
 * since time zone look-ups are slow.
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
    // Clocks may have passed an edge and then been set back to before it.
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

/** Makes periods of `count` months, one of which begins in month `first` of 1970 (0 is January). */
function periodsOfMonths(count: number, first: number, day: number): Periods {
  function beginUs(number: number): number {
    const month = number * count + first
    // Day 0 of the next month is the last day of this one.
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
