import { SluiceError, shown } from '../core/errors.ts'
import type { Param } from '../core/params.ts'

/** What `startsOn` must be for each `per`, as errors put it. */
const allowed: Readonly<Record<string, string>> = {
  hour: "left out with per 'hour'",
  day: "left out with per 'day'",
  week: 'a day of the week, from 1 (Monday) to 7 (Sunday)',
  month: 'a day of the month, from 1 to 31',
  year: "a month and day, such as '04-06'",
}

const lastDay: Readonly<Record<string, number>> = { week: 7, month: 31 }

/**
 * startsOnParam is the first day of a calendar period: a day of the week or month as a number, or
 * the date on which a year starts, such as `'04-06'`. Default: 1, the calendar's own first day.
 */
export const startsOnParam: Param = {
  kind: 'word',
  choices: undefined,
  fallback: () => 1,
  check(where, value, { per }) {
    const text = typeof value === 'string' || typeof value === 'number' ? `${value}` : ''
    if (text === '1' || (per === 'year' && text === '01-01')) return 1
    if (per === 'year' && isDate(text)) return text
    if (/^[1-9]\d?$/.test(text) && Number(text) <= lastDay[per]) return Number(text)
    throw new SluiceError('SLUICE_OPTION', `${where} must be ${allowed[per]}, got ${shown(value)}.`)
  },
}

/** Tells whether a text is a month and day that exist in leap years. */
function isDate(text: string): boolean {
  const date = new Date(`2000-${text}T00:00Z`)
  return /^\d\d-\d\d$/.test(text) && date.getUTCDate() === Number(text.slice(3))
}
