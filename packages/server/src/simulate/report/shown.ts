const numbers = new Intl.NumberFormat('en')

// Control characters, which a terminal might obey, and characters that reorder or hide text.
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** count writes a whole number: 1,234,567. */
export function count(value: number): string {
  return numbers.format(value)
}

/** counted writes a number of things: `1 client`, `2 clients`. */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`
}

/** percent formats a share: 0.0123 → `1.23 %`. A share above 0 is never shown as 0. */
export function percent(share: number): string {
  if (share === 0) return '0 %'
  const value = share * 100
  if (value < 0.001) return '< 0.001 %'
  // A share below 1 is never shown as 100 %.
  const rounded = Number(value.toPrecision(3))
  return `${rounded >= 100 && share < 1 ? '> 99.9' : rounded} %`
}

/** part writes a number and its share: `12 (0.4 %)`. */
export function part(value: number, whole: number): string {
  return whole === 0 ? count(value) : `${count(value)} (${percent(value / whole)})`
}

/** plain makes external text safe to print, and short: control characters are escaped. */
export function plain(text: string, longest = 60): string {
  const safe = text.replace(UNSAFE, (unit) => {
    const code = unit.codePointAt(0) ?? 0
    return `\\u{${code.toString(16)}}`
  })
  return safe.length > longest ? `${cut(safe, longest - 1)}…` : safe
}

/** cut returns the first units of a text, one fewer if that would split a surrogate pair. */
export function cut(text: string, units: number): string {
  const isHalved = (text.codePointAt(units - 1) ?? 0) > 0xffff
  return text.slice(0, isHalved ? units - 1 : units)
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
] as const

/** span writes a duration with its two largest units: `1 h 30 m`. */
export function span(ms: number): string {
  let left = Math.round(ms)
  const words: string[] = []
  for (const [unit, size] of UNITS) {
    const whole = Math.floor(left / size)
    if (whole > 0) words.push(`${whole} ${unit}`)
    else if (words.length > 0) break
    left -= whole * size
    if (words.length === 2) break
  }
  return words.join(' ') || '0 ms'
}

/** bytes writes a size: `1.5 GiB`. */
export function bytes(value: number): string {
  const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  const power = value < 1 ? 0 : Math.min(names.length - 1, Math.floor(Math.log2(value) / 10))
  return `${(value / 1_024 ** power).toFixed(power === 0 ? 0 : 1)} ${names[power]}`
}

/** clockTime formats an ISO time: `2026-11-16 18:00:00`. */
export function clockTime(iso: string): string {
  return iso.slice(0, 19).replace('T', ' ')
}

/** shareName names a percentile: 0.99 → `p99`. */
export function shareName(share: number): string {
  return share === 1 ? 'max' : `p${Number((share * 100).toFixed(1))}`
}
