import { SluiceError } from 'sluice'

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}
const MOST_MS = 400 * UNIT_MS.d

/**
 * wholeOption reads the value of an option such as `--top` as a whole number. Like every function
 * in this file it throws `SLUICE_OPTION` for anything else.
 */
export function wholeOption(name: string, text: string, least: number, most: number): number {
  const value = Number(text)
  if (/^\d{1,15}$/.test(text) && value >= least && value <= most) return value
  const range = `from ${least.toLocaleString('en')} to ${most.toLocaleString('en')}`
  throw mistake(name, `a whole number ${range}`, text)
}

/** durationOption reads a time such as `500ms`, `90s`, `10m`, `1h` or `1d`, in milliseconds. */
export function durationOption(name: string, text: string, leastMs = 0): number {
  const found = /^(\d{1,11})(ms|s|m|h|d)$/.exec(text)
  const ms = found ? Number(found[1]) * UNIT_MS[found[2]] : -1
  if (ms >= leastMs && ms <= MOST_MS) return ms
  const range = `from ${leastMs}ms to 400d`
  throw mistake(name, `a time ${range}, such as 500ms, 90s, 10m or 1h`, text)
}

/** choiceOption reads the value of an option as one of its known words. */
export function choiceOption<const T extends string>(
  name: string,
  text: string,
  known: readonly T[],
): T {
  const found = known.find((each) => each === text)
  if (found !== undefined) return found
  throw mistake(name, `${known.slice(0, -1).join(', ')} or ${known.at(-1)}`, text)
}

function mistake(name: string, wanted: string, text: string): SluiceError {
  return new SluiceError('SLUICE_OPTION', `${name} must be ${wanted}, got ${JSON.stringify(text)}.`)
}
