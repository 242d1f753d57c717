const ISO = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d$/
const REST = /^(?:[.,](\d+))? ?(Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?$/i
const COMBINED = /^(\d\d)\/(\w{3})\/(\d{4}):(\d\d:\d\d:\d\d) ([+-](?:[01]\d|2[0-3]))([0-5]\d)$/
const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ')
const MINUTE_LENGTH = '2026-11-16T18:00'.length
const SECOND_LENGTH = '2026-11-16T18:00:00'.length

/**
 * TimeReader returns whole microseconds since 1970; undefined for anything but a time after 1970.
 */
export type TimeReader = (value: unknown) => number | undefined

/**
 * createTimeReader reads ISO 8601 (UTC without a zone; with or without seconds), and time since
 * 1970 as a number or numeric string: seconds below 10^11, milliseconds below 10^14, else
 * microseconds. It caches the last second, because neighbouring lines share it.
 */
export function createTimeReader(): TimeReader {
  let lastSecond = ''
  let lastZone = ''
  let lastMs: number | undefined

  function isoUs(text: string): number | undefined {
    const rest = REST.exec(text.slice(SECOND_LENGTH))
    if (!rest) return undefined
    const [, fraction = '', zone = 'Z'] = rest
    const second = text.slice(0, SECOND_LENGTH)
    if (second !== lastSecond || zone !== lastZone) {
      lastMs = secondMs(second, zone)
      lastSecond = second
      lastZone = zone
    }
    if (lastMs === undefined || lastMs < 0) return undefined
    if (fraction === '') return lastMs * 1_000
    return lastMs * 1_000 + Number(fraction.slice(0, 6).padEnd(6, '0'))
  }

  return (value) => {
    if (typeof value === 'number') return epochUs(value)
    if (typeof value !== 'string') return undefined
    if (value.length >= MINUTE_LENGTH && value[4] === '-') return isoUs(withSeconds(value))
    return /^\d{1,16}(\.\d{1,9})?$/.test(value) ? epochUs(Number(value)) : undefined
  }
}

/** createCombinedTimeReader reads `16/Nov/2026:18:00:00 +0000`, the time of access logs. */
export function createCombinedTimeReader(): (text: string) => number | undefined {
  let last = ''
  let lastUs: number | undefined
  return (text) => {
    if (text === last) return lastUs
    last = text
    lastUs = combinedUs(text)
    return lastUs
  }
}

function combinedUs(text: string): number | undefined {
  const found = COMBINED.exec(text)
  if (!found) return undefined
  const [, day, month, year, time, hours, minutes] = found
  const number = String(MONTHS.indexOf(month) + 1).padStart(2, '0')
  const ms = secondMs(`${year}-${number}-${day}T${time}`, `${hours}:${minutes}`)
  return ms === undefined || ms < 0 ? undefined : ms * 1_000
}

/** `18:00Z` is `18:00:00Z`; a fraction of a minute is invalid. */
function withSeconds(text: string): string {
  const next = text[MINUTE_LENGTH]
  if (next === ':' || next === '.' || next === ',') return text
  return `${text.slice(0, MINUTE_LENGTH)}:00${text.slice(MINUTE_LENGTH)}`
}

function secondMs(second: string, zone: string): number | undefined {
  if (!ISO.test(second)) return undefined
  // Unix time has no leap seconds.
  const text = second.replace(/[ t]/, 'T').replace(/:60$/, ':59')
  const ms = Date.parse(`${text}Z`)
  // `Date` would read the 30th of February as the 2nd of March.
  if (Number.isNaN(ms) || new Date(ms).toISOString().slice(0, SECOND_LENGTH) !== text) {
    return undefined
  }
  if (zone === 'Z' || zone === 'z') return ms
  const offset = Number(zone.slice(1, 3)) * 60 + Number(zone.slice(-2))
  return ms - (zone[0] === '-' ? -offset : offset) * 60_000
}

function epochUs(value: number): number | undefined {
  if (!(value >= 0 && value < 1e17)) return undefined
  const us = value < 1e11 ? value * 1e6 : value < 1e14 ? value * 1e3 : value
  const whole = Math.round(us)
  return Number.isSafeInteger(whole) ? whole : undefined
}
