// Longer than the other files: each meter is a second, slow version of one algorithm, and they are compared side by side.

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
  /** Tells whether `units` would pass at `atUs` if nothing else happened until then. */
  passes(units: number, atUs: number): boolean
  /** Tells whether the state at `atUs` equals that of a key never seen. */
  isFresh(atUs: number): boolean
  spend(units: number, nowUs: number): void
  /** Refunds units spent at `spentUs`; without it, the latest ones. */
  refund(units: number, nowUs: number, spentUs?: number): void
  /** For rules that hold units: spends units and returns the hold. */
  hold?(units: number, nowUs: number): Hold
  /** Tells whether a hold still counts. After a reset, or in another meter, it does not. */
  holds?(hold: Hold, nowUs: number): boolean
  release?(hold: Hold): void
  /** Switches to a rule with other limits. Units used at `nowUs` stay used. */
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

/** createMeter creates a fresh meter for a rule of a built-in algorithm. */
export function createMeter(rule: Rule): Meter {
  return makers[rule.algorithm.name](rule)
}

const total = (spends: readonly Spent[]) => spends.reduce((sum, { units }) => sum + units, 0)

/** Removes units from the newest spends, and drops spends that become empty. */
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

/** A draining bucket: its level in parts of 1 / perUs unit, and the instant of that level. */
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
      // The same level in parts of the other rule, rounded up to a whole part of a
      // microsecond of that rule's gap.
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

/** The spends of the open window, which opens at the first of them. */
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
      // If either rule is aligned to the clock, the window opens anew at `nowUs`.
      if (isAligned(to) || isAligned(from)) opened = opening(nowUs)
      else opened = nowUs - share(Math.min(elapsed, from.perUs), to.perUs, from.perUs)
    },
    copy: () => fixedWindowMeter(rule, opened, spends),
  }
}

function isAligned({ params }: Rule): boolean {
  return params.align === 'clock'
}

/** All spends of the current window and the previous one. */
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

/** The spends of one period, which its name identifies. */
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

/** Since 2023 all offsets from UTC are multiples of 15 minutes, and change at such instants. */
const QUARTER_MS = 900_000

/** The furthest that clocks have been set back since 1995. */
const BACK_QUARTERS = 12

const named = new WeakMap<Rule, Map<number, string>>()

/** Returns the name of the calendar period of an instant: its first day or hour. */
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
 * Returns the latest local time that clocks have shown up to a quarter of an hour: `2026-01-31T10`.
 * If clocks pass an edge and are set back to before it, the later period continues.
 */
function clockAt(timeZone: string, quarter: number): string {
  const options = { timeZone, hourCycle: 'h23', dateStyle: 'short', timeStyle: 'short' } as const
  // Swedish dates have the ISO 8601 format, which sorts as text.
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

/** Finds the first day or hour of the period of a local time, day by day. */
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
