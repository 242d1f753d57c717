import { SluiceError, shown } from './errors.ts'

/**
 * Duration is a number of milliseconds, or a whole number and a unit: `'250ms'`, `'10s'`, `'1m'`,
 * `'1h'`, `'1d'` (or `'us'`). Cast a string that is only known at run time: `text as Duration`.
 * Invalid durations throw `SLUICE_DURATION`.
 */
export type Duration = number | `${number}${'us' | 'ms' | 's' | 'm' | 'h' | 'd'}`

const UNIT_MS: Readonly<Record<string, number>> = {
  us: 0.001,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** A hundred years: the longest duration of a state, debt or block. In µs it is far below 2^53. */
export const CENTURY_MS = 36_525 * UNIT_MS.d
export const CENTURY_US = CENTURY_MS * 1_000

/**
 * durationUs parses a duration into whole microseconds, rounded. Throws `SLUICE_DURATION` if the
 * text does not parse or the value is outside `leastMs` to `mostMs`.
 */
export function durationUs(where: string, value: unknown, leastMs: number, mostMs: number): number {
  const ms = typeof value === 'string' ? msOf(value) : value
  if (typeof ms === 'number' && ms >= leastMs && ms <= mostMs) return Math.round(ms * 1_000)
  throw new SluiceError(
    'SLUICE_DURATION',
    `${where} must be a duration from ${leastMs} ms to ${Math.floor(mostMs / UNIT_MS.d)} days, got ` +
      `${shown(value)}. Write a whole number and a unit (us, ms, s, m, h, d), such as '90m', or a ` +
      'number of milliseconds.',
  )
}

function msOf(text: string): number {
  const [, number, unit] = /^(\d{1,15})(us|ms|s|m|h|d)$/.exec(text) ?? []
  return Number(number) * UNIT_MS[unit]
}

/** durationText formats microseconds as a duration, in the largest unit that divides them. */
export function durationText(us: number): string {
  for (const unit of ['d', 'h', 'm', 's', 'ms']) {
    const unitUs = UNIT_MS[unit] * 1_000
    if (us % unitUs === 0) return `${us / unitUs}${unit}`
  }
  return `${us}us`
}
