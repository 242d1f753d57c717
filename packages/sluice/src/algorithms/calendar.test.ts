import { describe, expect, it } from 'vitest'
import { seededRandom } from '../testing/random.ts'
import { createCalendar } from './calendar.ts'
import { zoneOf } from './zone.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

interface Asked {
  readonly per: string
  readonly zone: string
  readonly startsOn: number | string
}

const formats = new Map<string, Intl.DateTimeFormat>()

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const number = '2-digit'
  const date = { year: 'numeric', month: number, day: number, hour: number } as const
  const options = { timeZone, hourCycle: 'h23', calendar: 'gregory', ...date } as const
  const format = formats.get(timeZone) ?? new Intl.DateTimeFormat('en-GB', options)
  formats.set(timeZone, format)
  return format
}

/** Names the period that clocks show; names sort in the order of periods. */
function nameAt({ per, zone, startsOn }: Asked, ms: number): string {
  const parts = formatOf(zone).formatToParts(ms)
  const [year, month, day, hour] = (['year', 'month', 'day', 'hour'] as const).map(
    (wanted) => parts.find(({ type }) => type === wanted)!.value,
  )
  const date = `${year}-${month}-${day}`
  if (per === 'hour') return `${date}T${hour}`
  if (per === 'day') return date
  if (per === 'week') {
    const sinceDays = (new Date(date).getUTCDay() - Number(startsOn) + 7) % 7
    return new Date(Date.parse(date) - sinceDays * DAY_MS).toISOString().slice(0, 10)
  }
  if (per === 'month') return monthOf(year, month, day >= firstDay(year, month, startsOn) ? 0 : 1)
  const [first, on] = startsOn === 1 ? ['01', 1] : String(startsOn).split('-')
  const hasBegun = `${month}-${day}` >= `${first}-${firstDay(year, first, on)}`
  return monthOf(year, '01', hasBegun ? 0 : 12)
}

/** Returns the day of the month on which a period begins, as two digits. */
function firstDay(year: string, month: string, startsOn: number | string): string {
  const lastDay = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()
  return String(Math.min(Number(startsOn), lastDay)).padStart(2, '0')
}

function monthOf(year: string, month: string, before: number): string {
  return new Date(Date.UTC(Number(year), Number(month) - 1 - before)).toISOString().slice(0, 7)
}

/** The furthest that clocks were ever set back (Vostok). */
const BACK_MS = 7 * HOUR_MS

/** Returns the first millisecond from `fromMs` on whose name is at least `name`, or above it. */
function walk(asked: Asked, fromMs: number, name: string, isAbove: boolean): number {
  const reaches = (ms: number) => {
    const found = nameAt(asked, ms)
    return isAbove ? found > name : found >= name
  }
  let ms = Math.floor(fromMs / MINUTE_MS) * MINUTE_MS
  while (!reaches(ms)) ms += MINUTE_MS
  for (ms -= MINUTE_MS; !reaches(ms); ) ms += 1_000
  return ms
}

/** Finds the period of an instant by stepping through the zone's local time minute by minute. */
function slowly(asked: Asked, atMs: number): [startMs: number, endMs: number] {
  let name = ''
  for (let ms = atMs - BACK_MS; ms <= atMs; ms += MINUTE_MS) {
    const shown = nameAt(asked, ms)
    if (shown > name) name = shown
  }
  let beforeMs = atMs
  while (nameAt(asked, beforeMs) >= name) beforeMs -= HOUR_MS
  let afterMs = atMs
  while (nameAt(asked, afterMs) <= name) afterMs += HOUR_MS
  return [
    walk(asked, beforeMs - BACK_MS, name, false),
    walk(asked, Math.max(atMs, afterMs - BACK_MS), name, true),
  ]
}

function quickly({ per, zone, startsOn }: Asked, atMs: number): number[] {
  const [, startUs, endUs] = createCalendar(per, zone, startsOn, 0).edgesAround(atMs * 1_000)
  return [startUs / 1_000, endUs / 1_000]
}

/** Returns an instant `offMs` from the zone's next clock change, if there is one within a year. */
function nearChange(zone: string, fromMs: number, offMs: number): number {
  const aheadUs = (ms: number) => zoneOf(zone).localUs(ms * 1_000) - ms * 1_000
  for (let ms = fromMs; ms < fromMs + 366 * DAY_MS; ms += DAY_MS / 2) {
    if (aheadUs(ms) !== aheadUs(fromMs)) return ms + offMs
  }
  return fromMs
}

const odd = ['America/St_Johns', 'Africa/Monrovia', 'Australia/Lord_Howe', 'Antarctica/Troll']
const zones = [...Intl.supportedValuesOf('timeZone'), ...Array(30).fill(odd).flat()]

describe('createCalendar', () => {
  it.each([
    ['hour', 1],
    ['day', 1],
    ['week', 1],
    ['week', 7],
    ['month', 1],
    ['month', 31],
    ['year', 1],
    ['year', '02-29'],
  ])('finds the edges of %ss that start on %s, in every zone', (per, startsOn) => {
    const seed = Date.now() % 2 ** 31
    const random = seededRandom(seed)
    const wrong: string[] = []
    for (let i = 0; i < 40; i += 1) {
      const asked = { per, zone: random.pick(zones), startsOn }
      const offMs = (random.below(24 * 3_600) - 12 * 3_600) * 1_000
      let atMs = random.below(180 * 365) * DAY_MS + random.below(DAY_MS) + 2 * DAY_MS
      if (i % 4 > 0) atMs = nearChange(asked.zone, atMs % (60 * 365 * DAY_MS), offMs)
      if (i % 4 === 2) atMs = quickly(asked, atMs)[random.below(2)] - random.below(2)
      const [mine, slow] = [quickly(asked, atMs), slowly(asked, atMs)].map(dates)
      if (mine !== slow) wrong.push(`${asked.zone} at ${dates([atMs])}: ${mine}, not ${slow}`)
    }
    expect(wrong, `seed ${seed}`).toEqual([])
  })

  it.each([
    // In spring midnight is skipped; in autumn the hour before 01:00 repeats.
    ['America/Havana', 'day', '2026-03-08T12:00Z', '2026-03-08T05:00Z', '2026-03-09T04:00Z'],
    ['America/Havana', 'day', '2026-11-01T12:00Z', '2026-11-01T04:00Z', '2026-11-02T05:00Z'],
    // Clocks were set back at 00:01 to the day before, which had ended already.
    ['America/St_Johns', 'day', '2000-10-29T03:00Z', '2000-10-29T02:30Z', '2000-10-30T03:30Z'],
    // Samoa skipped 30 December.
    ['Pacific/Apia', 'day', '2011-12-30T09:59Z', '2011-12-29T10:00Z', '2011-12-30T10:00Z'],
    ['Pacific/Apia', 'day', '2011-12-30T10:00Z', '2011-12-30T10:00Z', '2011-12-31T10:00Z'],
    // The offset was 44 minutes and 30 seconds until this midnight.
    ['Africa/Monrovia', 'day', '1972-01-06T12:00Z', '1972-01-06T00:44:30Z', '1972-01-07T00:44:30Z'],
    ['Africa/Monrovia', 'hour', '1972-01-07T00:50Z', '1972-01-07T00:44:30Z', '1972-01-07T01:00Z'],
    // Clocks change by half an hour.
    ['Australia/Lord_Howe', 'hour', '2026-10-03T15:40Z', '2026-10-03T15:30Z', '2026-10-03T16:00Z'],
    ['Australia/Lord_Howe', 'hour', '2026-04-04T14:40Z', '2026-04-04T14:00Z', '2026-04-04T15:30Z'],
    ['Asia/Kathmandu', 'day', '2026-01-01T00:00Z', '2025-12-31T18:15Z', '2026-01-01T18:15Z'],
  ])('in %s, the %s of %s runs from %s to %s', (zone, per, at, start, end) => {
    const found = quickly({ zone, per, startsOn: 1 }, Date.parse(at))
    expect(found).toEqual([Date.parse(start), Date.parse(end)])
    expect(slowly({ zone, per, startsOn: 1 }, Date.parse(at))).toEqual(found)
  })

  it('returns the edges of three consecutive periods', () => {
    const calendar = createCalendar('month', 'Europe/Berlin', 31, 0)
    const edges = [
      '2026-01-30T23:00Z',
      '2026-02-27T23:00Z',
      '2026-03-30T22:00Z',
      '2026-04-29T22:00Z',
    ]
    const around = calendar.edgesAround(Date.parse('2026-03-29') * 1_000)
    expect(dates(around.map((us) => us / 1_000))).toBe(dates(edges.map((text) => Date.parse(text))))
  })
})

const dates = (all: readonly number[]) => all.map((ms) => new Date(ms).toISOString()).join(' – ')
