import { CENTURY_US } from '../core/duration.ts'
import type { Rule } from '../core/rule.ts'
import { holdMeter } from './hold-meter.ts'

/** Hold is the units of one permit under one rule, and the instant at which they come back. */
export interface Hold {
  readonly units: number
  readonly untilUs: number
}

/** Meter is the state of one key under one rule in the reference model. */
export interface Meter {
  /** Whether `units` would pass at that instant if nothing else happened until then. */
  passes(units: number, atUs: number): boolean
  /** Whether the state then equals that of a key never seen. */
  isFresh(atUs: number): boolean
  spend(units: number, nowUs: number): void
  /** Gives back units spent at `spentUs`; left out: the latest. */
  refund(units: number, nowUs: number, spentUs?: number): void
  /** Where units are held: spends them, and gives the hold. */
  hold?(units: number, nowUs: number): Hold
  /** Whether a hold still counts, as it does not after a reset or in another meter. */
  holds?(hold: Hold, nowUs: number): boolean
  release?(hold: Hold): void
  /** Goes over to a rule with other figures; the units used at `nowUs` stay used. */
  carry(rule: Rule, nowUs: number): void
  copy(): Meter
}

interface Spent {
  atUs: number
  units: number
}

const makers: Readonly<Record<string, (rule: Rule) => Meter>> = {
  'fixed-window': fixedWindowMeter,
  'sliding-window-log': logMeter,
  'sliding-window-counter': counterMeter,
  'token-bucket': bucketMeter,
  gcra: bucketMeter,
  'leaky-bucket': bucketMeter,
  'calendar-window': calendarMeter,
  concurrency: holdMeter,
  unlimited: unlimitedMeter,
}

function unlimitedMeter(): Meter {
  return {
    passes: () => true,
    isFresh: () => true,
    spend() {},
    refund() {},
    carry() {},
    copy: unlimitedMeter,
  }
}

/** createMeter makes a fresh meter for a rule of one of Sluice's own algorithms. */
export function createMeter(rule: Rule): Meter {
  return makers[rule.algorithm.name](rule)
}

const total = (spends: readonly Spent[]) => spends.reduce((sum, { units }) => sum + units, 0)

/** Takes units off the newest spends; those that become empty go. */
function takeNewest(spends: readonly Spent[], units: number): Spent[] {
  const left = spends.map((spent) => ({ ...spent }))
  for (const spent of left.toReversed()) {
    const taken = Math.min(spent.units, units)
    spent.units -= taken
    units -= taken
  }
  return left.filter((spent) => spent.units > 0)
}

/** floor(a · b / c) */
function share(a: number, b: number, c: number): number {
  return Number((BigInt(a) * BigInt(b)) / BigInt(c))
}

/** A bucket that drains: the units in it, as a whole number of (1 / perUs) parts, and since when. */
function bucketMeter(rule: Rule, level = 0n, sinceUs = 0): Meter {
  const per = () => BigInt(rule.perUs)
  const limit = () => BigInt(rule.limit)
  const levelAt = (us: number) => {
    const drained = level - limit() * BigInt(Math.max(0, us - sinceUs))
    return drained > 0n ? drained : 0n
  }
  const set = (next: bigint, nowUs: number) => {
    const most = limit() * BigInt(CENTURY_US)
    level = next < 0n ? 0n : next > most ? most : next
    sinceUs = nowUs
  }
  return {
    passes: (units, us) => levelAt(us) + BigInt(units) * per() <= BigInt(rule.capacity) * per(),
    isFresh: (us) => levelAt(us) === 0n,
    spend: (units, nowUs) => set(levelAt(nowUs) + BigInt(units) * per(), nowUs),
    refund(units, nowUs, spentUs = nowUs) {
      if (rule.algorithm.name === 'leaky-bucket') return
      const refilled = limit() * BigInt(Math.max(0, nowUs - spentUs))
      const back = BigInt(units) * per() - refilled
      if (back > 0n) set(levelAt(nowUs) - back, nowUs)
    },
    carry(to, nowUs) {
      // The same fill in parts of the other rule, rounded up to what drains in a whole part of a
      // microsecond of its gap.
      const from = levelAt(nowUs)
      const before = per()
      const same = BigInt(to.perUs) * limit() === before * BigInt(to.limit)
      rule = to
      if (same) {
        set((from * per()) / before, nowUs)
        return
      }
      const step = greatestDivisor(limit(), per())
      const unit = before * step
      set(((from * per() + unit - 1n) / unit) * step, nowUs)
    },
    copy: () => bucketMeter(rule, level, sinceUs),
  }
}

function greatestDivisor(a: bigint, b: bigint): bigint {
  return b === 0n ? a : greatestDivisor(b, a % b)
}

/** The spends of the open window; it opens with the first. */
function fixedWindowMeter(rule: Rule, opened = 0, spends: Spent[] = []): Meter {
  const openSpends = (us: number) => (us < opened + rule.perUs ? spends : [])
  const opening = (us: number) => (isAligned(rule) ? Math.floor(us / rule.perUs) * rule.perUs : us)
  return {
    passes: (units, us) => total(openSpends(us)) + units <= rule.limit,
    isFresh: (us) => total(openSpends(us)) === 0,
    spend(units, nowUs) {
      spends = openSpends(nowUs)
      if (spends.length === 0) opened = opening(nowUs)
      spends = [...spends, { atUs: nowUs, units }]
    },
    refund(units, nowUs, spentUs = nowUs) {
      if (spentUs >= opened) spends = takeNewest(openSpends(nowUs), units)
    },
    carry(to, nowUs) {
      spends = openSpends(nowUs)
      const elapsed = nowUs - opened
      const from = rule
      rule = to
      if (from.perUs === to.perUs && isAligned(from) === isAligned(to)) return
      // A window aligned to the clock is the present one; a window after one of those opens now.
      if (isAligned(to) || isAligned(from)) opened = opening(nowUs)
      else opened = nowUs - share(Math.min(elapsed, from.perUs), to.perUs, from.perUs)
    },
    copy: () => fixedWindowMeter(rule, opened, spends),
  }
}

function isAligned({ params }: Rule): boolean {
  return params.align === 'clock'
}

/** All spends of this window and the one before. */
function counterMeter(rule: Rule, spends: Spent[] = []): Meter {
  const windowOf = (us: number) => Math.floor(us / rule.perUs)
  const inWindow = (index: number) => spends.filter(({ atUs }) => windowOf(atUs) === index)
  const usedAt = (us: number) => {
    const previous = total(inWindow(windowOf(us) - 1))
    const leftUs = rule.perUs - (us % rule.perUs)
    const weighed = BigInt(previous) * BigInt(leftUs) + BigInt(rule.perUs) - 1n
    return total(inWindow(windowOf(us))) + Number(weighed / BigInt(rule.perUs))
  }
  return {
    passes: (units, us) => usedAt(us) + units <= rule.limit,
    isFresh: (us) => usedAt(us) === 0,
    spend(units, nowUs) {
      spends = [
        ...inWindow(windowOf(nowUs) - 1),
        ...inWindow(windowOf(nowUs)),
        { atUs: nowUs, units },
      ]
    },
    refund(units, nowUs, spentUs = nowUs) {
      const now = windowOf(nowUs)
      const takeIn = (index: number) => {
        const own = inWindow(index)
        return windowOf(spentUs) === index ? takeNewest(own, units) : own
      }
      spends = [...takeIn(now - 1), ...takeIn(now)]
    },
    carry(to, nowUs) {
      if (to.perUs !== rule.perUs) {
        const used = usedAt(nowUs)
        spends = used > 0 ? [{ atUs: nowUs, units: used }] : []
      }
      rule = to
    },
    copy: () => counterMeter(rule, spends),
  }
}

/** All spends of the last `per`. */
function logMeter(rule: Rule, spends: Spent[] = []): Meter {
  const counting = (us: number) => spends.filter(({ atUs }) => us < atUs + rule.perUs)
  return {
    passes: (units, us) => total(counting(us)) + units <= rule.limit,
    isFresh: (us) => counting(us).length === 0,
    spend(units, nowUs) {
      spends = [...counting(nowUs), { atUs: nowUs, units }]
    },
    refund(units, nowUs, spentUs) {
      const isOwn = ({ atUs }: Spent) => spentUs === undefined || atUs === spentUs
      const counted = counting(nowUs)
      const others = counted.filter((spent) => !isOwn(spent))
      spends = [...others, ...takeNewest(counted.filter(isOwn), units)]
      spends.sort((a, b) => a.atUs - b.atUs)
    },
    carry(to, nowUs) {
      spends = counting(nowUs)
      if (to.perUs !== rule.perUs) {
        spends = spends.map(({ atUs, units }) => ({
          atUs: nowUs - share(nowUs - atUs, to.perUs, rule.perUs),
          units,
        }))
      }
      rule = to
    },
    copy: () => logMeter(rule, spends),
  }
}

/** The spends of one period, which has a name; another name is another period. */
function calendarMeter(rule: Rule, period = '', spends: Spent[] = []): Meter {
  const counting = (us: number) =>
    spends.length > 0 && periodOf(rule, us) === period ? spends : []
  return {
    passes: (units, us) => total(counting(us)) + units <= rule.limit,
    isFresh: (us) => total(counting(us)) === 0,
    spend(units, nowUs) {
      spends = [...counting(nowUs), { atUs: nowUs, units }]
      period = periodOf(rule, nowUs)
    },
    refund(units, nowUs, spentUs = nowUs) {
      const isOpen = periodOf(rule, spentUs) === period
      if (isOpen) spends = takeNewest(counting(nowUs), units)
    },
    carry(to, nowUs) {
      spends = counting(nowUs)
      rule = to
      period = periodOf(rule, nowUs)
    },
    copy: () => calendarMeter(rule, period, spends),
  }
}

/** Offsets from UTC are whole quarters of an hour, and change at such instants, since 2023. */
const QUARTER_MS = 900_000

/** Clocks have not been set back by more than this since 1995. */
const BACK_QUARTERS = 12

const named = new WeakMap<Rule, Map<number, string>>()

/** The name of the calendar period of an instant, which is its first day or hour. */
function periodOf(rule: Rule, us: number): string {
  const { per, zone, startsOn } = rule.params
  const quarter = Math.floor(us / 1_000 / QUARTER_MS)
  const names = named.get(rule) ?? new Map<number, string>()
  named.set(rule, names)
  const name = names.get(quarter) ?? firstOf(`${per}`, clockAt(`${zone}`, quarter), startsOn)
  names.set(quarter, name)
  return name
}

const formats = new Map<string, Intl.DateTimeFormat>()

/**
 * The latest that clocks have shown up to a quarter of an hour: `2026-01-31T10`. Where they are set back
 * across an edge that they have passed, the later period goes on.
 */
function clockAt(timeZone: string, quarter: number): string {
  const options = { timeZone, hourCycle: 'h23', dateStyle: 'short', timeStyle: 'short' } as const
  // Swedish dates are those of ISO 8601, which sort.
  const format = formats.get(timeZone) ?? new Intl.DateTimeFormat('sv-SE', options)
  formats.set(timeZone, format)
  const shown = Array.from({ length: BACK_QUARTERS + 1 }, (_, back) =>
    format.format((quarter - back) * QUARTER_MS),
  )
  return shown
    .reduce((last, time) => (time > last ? time : last))
    .slice(0, 13)
    .replace(' ', 'T')
}

/** The first day or hour of the period that a local time is in, looked for day by day. */
function firstOf(per: string, local: string, startsOn: number | string): string {
  if (per === 'hour') return local
  const date = new Date(local.slice(0, 10))
  while (!isFirst(per, date, startsOn)) date.setUTCDate(date.getUTCDate() - 1)
  return date.toISOString().slice(0, 10)
}

function isFirst(per: string, date: Date, startsOn: number | string): boolean {
  if (per === 'day') return true
  if (per === 'week') return date.getUTCDay() === Number(startsOn) % 7
  const [month, day] = per === 'month' || startsOn === 1 ? [1, startsOn] : `${startsOn}`.split('-')
  if (per === 'year' && date.getUTCMonth() + 1 !== Number(month)) return false
  const lastDay = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate()
  return date.getUTCDate() === Math.min(Number(day), lastDay)
}
