import { describe, expect, it } from 'vitest'
import { RECENT } from '../core/algorithm.ts'
import type { Rule } from '../core/rule.ts'
import { shareOf } from '../failure/share.ts'
import { calendarWindow } from './calendar-window.ts'

const DAY_US = 86_400_000_000
/** Until 2255: later microseconds are not exact in a double. */
const DAYS = 104_249

type Per = Parameters<typeof calendarWindow>[0]['per']

/** Computes the end of a date's period with `Date`. */
const endMs: Readonly<Record<Per, (date: Date) => number>> = {
  hour: (date) => date.setUTCHours(date.getUTCHours() + 1, 0, 0, 0),
  day: (date) => date.setUTCHours(24, 0, 0, 0),
  week: (date) => date.setUTCHours(24 * (7 - ((date.getUTCDay() + 6) % 7)), 0, 0, 0),
  month: (date) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1),
  year: (date) => Date.UTC(date.getUTCFullYear() + 1, 0),
}

/** Returns a state of `rule` after `units` were spent at once. */
function spent(rule: Rule, units: number, nowUs: number): Float64Array {
  const cells = new Float64Array(2)
  rule.algorithm.spend(cells, 0, rule, units, nowUs)
  return cells
}

const at = (text: string) => Date.parse(text) * 1_000

describe('calendarWindow', () => {
  it.each(Object.keys(endMs) as Per[])('ends each %s when Date does, until 2255', (per) => {
    const rule = calendarWindow({ limit: 1, per })
    const wrong: string[] = []
    for (let day = 0; day < DAYS; day += 1) {
      for (const nowUs of [day * DAY_US, (day + 1) * DAY_US - 1]) {
        const date = new Date(Math.floor(nowUs / 1_000))
        const [endUs] = spent(rule, 1, nowUs)
        if (endUs !== endMs[per](new Date(date)) * 1_000) wrong.push(date.toISOString())
      }
    }
    expect(wrong).toEqual([])
  })

  it('opens no period before the stored end', () => {
    const rule = calendarWindow({ limit: 3, per: 'month' })
    const cells = spent(rule, 3, at('2026-02-10'))
    const { waitUs, spend, remaining } = rule.algorithm
    for (const back of ['2026-01-31', '2026-01-01', '2025-06-15', '1970-01-01']) {
      expect(waitUs(cells, 0, rule, 1, at(back))).toBe(at('2026-03-01') - at(back))
      expect(remaining(cells, 0, rule, at(back))).toBe(0)
    }
    spend(cells, 0, rule, 1, at('2026-01-31'))
    expect([...cells]).toEqual([at('2026-03-01'), 4])
  })

  it('carries units over to the current period of another `per`', () => {
    const [hour, day, week, month] = (['hour', 'day', 'week', 'month'] as const).map((per) =>
      calendarWindow({ limit: 10, per }),
    )
    const carried = (from: Rule, to: Rule, spentAt: string, nowAt: string) => {
      const cells = spent(from, 4, at(spentAt))
      to.algorithm.carry(cells, 0, from, to, at(nowAt))
      return [...cells]
    }
    const now = '2026-01-30T10:20Z'
    expect(carried(hour, month, '2026-01-30T10:10Z', now)).toEqual([at('2026-02-01'), 4])
    expect(carried(month, hour, '2026-01-05', now)).toEqual([at('2026-01-30T11:00Z'), 4])
    expect(carried(week, day, '2026-01-26', now)).toEqual([at('2026-01-31'), 4])
    // The hour had ended.
    expect(carried(hour, month, '2026-01-30T09:59Z', now)[1]).toBe(0)
  })

  it('carries units over to a rule with another zone or first day', () => {
    const month = calendarWindow({ limit: 10, per: 'month' })
    const limited = calendarWindow({ limit: 5, per: 'month' })
    const tokyo = calendarWindow({ limit: 10, per: 'month', zone: 'Asia/Tokyo' })
    const fromMiddle = calendarWindow({ limit: 10, per: 'month', startsOn: 15 })
    const carried = (to: Rule, nowAt: string) => {
      const cells = spent(month, 4, at('2026-01-10'))
      to.algorithm.carry(cells, 0, month, to, at(nowAt))
      return [...cells]
    }
    expect(carried(limited, '2026-01-31T20:00Z')).toEqual([at('2026-02-01'), 4])
    expect(carried(tokyo, '2026-01-31T14:59Z')).toEqual([at('2026-01-31T15:00Z'), 4])
    expect(carried(tokyo, '2026-01-31T15:00Z')).toEqual([at('2026-02-28T15:00Z'), 4])
    expect(carried(fromMiddle, '2026-01-14')).toEqual([at('2026-01-15'), 4])
    expect(carried(fromMiddle, '2026-01-15')).toEqual([at('2026-02-15'), 4])
    expect(carried(fromMiddle, '2026-02-01')[1]).toBe(0)
  })

  it('frees nothing when time steps back to before a carried period', () => {
    const [hour, month] = (['hour', 'month'] as const).map((per) =>
      calendarWindow({ limit: 4, per }),
    )
    const cells = spent(hour, 4, at('2026-02-01T00:10Z'))
    month.algorithm.carry(cells, 0, hour, month, at('2026-01-31T23:59Z'))
    expect([...cells]).toEqual([at('2026-03-01'), 4])
  })

  it('refunds nothing once the period has ended', () => {
    const rule = calendarWindow({ limit: 5, per: 'day' })
    const { refund, remaining } = rule.algorithm
    const cells = spent(rule, 4, at('2026-01-31'))
    refund(cells, 0, rule, 1, at('2026-02-01') - 1, RECENT)
    expect(remaining(cells, 0, rule, at('2026-02-01') - 1)).toBe(2)
    refund(cells, 0, rule, 3, at('2026-02-01'), RECENT)
    expect(remaining(cells, 0, rule, at('2026-02-01'))).toBe(5)
  })

  it('refunds units spent on the same 25-hour day, and none of the day before', () => {
    const rule = calendarWindow({ limit: 5, per: 'day', zone: 'Europe/Berlin' })
    const left = (spentAt: string, nowAt = '2026-10-25T22:59Z') => {
      const cells = spent(rule, 4, at('2026-10-25T10:00Z'))
      rule.algorithm.refund(cells, 0, rule, 2, at(nowAt), at(spentAt))
      return rule.algorithm.remaining(cells, 0, rule, at(nowAt))
    }
    expect(left('2026-10-24T22:00Z')).toBe(3)
    expect(left('2026-10-24T22:00Z', '2026-10-25T23:00Z')).toBe(5)
    expect(left('2026-10-25T22:59Z')).toBe(3)
    expect(left('2026-10-24T21:59Z')).toBe(1)
    expect(left('2025-10-25T10:00Z')).toBe(1)
  })

  it('has no quota for a day that a country skips', () => {
    const rule = calendarWindow({ limit: 1, per: 'day', zone: 'Pacific/Apia' })
    const endOf = (text: string) => spent(rule, 1, at(text))[0]
    expect(endOf('2011-12-30T09:59Z')).toBe(at('2011-12-30T10:00Z'))
    expect(endOf('2011-12-30T10:00Z')).toBe(at('2011-12-31T10:00Z'))
  })

  it('opens no period before an end that other time zone data gave', () => {
    const rule = calendarWindow({ limit: 2, per: 'day', zone: 'Europe/Berlin' })
    const { waitUs, refund, merge } = rule.algorithm
    // By this node's time zone data the day ends at 22:00Z.
    const cells = Float64Array.of(at('2026-06-01T23:00Z'), 2)
    expect(waitUs(cells, 0, rule, 1, at('2026-06-01T22:30Z'))).toBe(1_800e6)
    refund(cells, 0, rule, 1, at('2026-06-01T22:30Z'), at('2026-06-01T10:00Z'))
    expect([...cells]).toEqual([at('2026-06-01T23:00Z'), 2])
    merge(cells, 0, spent(rule, 1, at('2026-06-01T12:00Z')), 0, rule, at('2026-06-01T21:00Z'))
    expect([...cells]).toEqual([at('2026-06-01T23:00Z'), 2])
  })

  it('merges to the stricter of two states, and drops ended periods', () => {
    const rule = calendarWindow({ limit: 5, per: 'day' })
    const merged = (mine: Float64Array, other: Float64Array, nowAt: string) => {
      rule.algorithm.merge(mine, 0, other, 0, rule, at(nowAt))
      return [...mine]
    }
    const [one, two] = ['2026-01-01', '2026-01-02'].map((day) => at(day))
    const open = () => spent(rule, 2, two)
    const noon = '2026-01-02T12:00Z'
    expect(merged(new Float64Array(2), open(), noon)).toEqual([at('2026-01-03'), 2])
    expect(merged(spent(rule, 5, one), open(), noon)).toEqual([at('2026-01-03'), 2])
    expect(merged(spent(rule, 1, two), open(), noon)).toEqual([at('2026-01-03'), 2])
    // Time has stepped back, so both periods are open.
    expect(merged(spent(rule, 5, one), open(), '2026-01-01')).toEqual([at('2026-01-03'), 5])
  })

  it('splits a limit among nodes; a share below one unit admits one per several periods', () => {
    const daily = (limit: number) => shareOf(calendarWindow({ limit, per: 'day' }), 10)
    expect(daily(29).limit).toBe(2)
    expect(spent(daily(29), 1, at('2026-01-31T12:00Z'))[0]).toBe(at('2026-02-01'))
    expect(daily(5).limit).toBe(1)
    expect(spent(daily(5), 1, at('2026-01-31T12:00Z'))[0]).toBe(at('2026-02-02'))
    // One unit in ceil(10 / 3) days for each of ten nodes.
    expect(spent(daily(3), 1, at('2026-01-31T12:00Z'))[0]).toBe(at('2026-02-04'))
    // Also across a day of 25 hours.
    const berlin = shareOf(calendarWindow({ limit: 5, per: 'day', zone: 'Europe/Berlin' }), 10)
    expect(spent(berlin, 1, at('2026-10-24T22:30Z'))[0]).toBe(at('2026-10-26T23:00Z'))
  })

  it('never overestimates the least wait in line', () => {
    const rule = calendarWindow({ limit: 10, per: 'month' })
    const { lineUs } = rule.algorithm
    expect(lineUs(rule, 0, 5 * DAY_US, 4, 3, 1)).toBe(0)
    expect(lineUs(rule, 0, 5 * DAY_US, 4, 4, 1)).toBe(5 * DAY_US)
    expect(lineUs(rule, 0, 5 * DAY_US, 0, 20, 1)).toBe((5 + 2 * 28) * DAY_US)
    // Two edges are 15 minutes apart when clocks are set forward from 02:45 to 03:45.
    const chatham = calendarWindow({ limit: 1, per: 'hour', zone: 'Pacific/Chatham' })
    const edges = chatham.algorithm.windows!(chatham).edgesAround!(at('2026-09-26T14:00Z'))
    expect(edges[2] - edges[1]).toBe(900e6)
    expect(lineUs(chatham, 0, 60e6, 0, 1, 1)).toBe(60e6 + 900e6)
  })
})
