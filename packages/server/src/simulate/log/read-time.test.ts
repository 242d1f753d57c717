import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createCombinedTimeReader, createTimeReader } from './read-time.ts'

const NOON_US = Date.UTC(2026, 10, 16, 12) * 1_000

describe('a time', () => {
  it.each([
    ['2026-11-16T12:00:00Z', 0],
    ['2026-11-16T12:00:00.123Z', 123_000],
    ['2026-11-16T12:00:00.1234567Z', 123_456],
    ['2026-11-16T13:30:00+01:30', 0],
    ['2026-11-16T04:00:00-0800', 0],
    ['2026-11-16 12:00:00', 0],
    ['2026-11-16t12:00:00z', 0],
    ['2026-11-16T12:00Z', 0],
    ['2026-11-16 12:00', 0],
    ['2026-11-16T13:00+01:00', 0],
    ['2026-11-16T12:00:60.5Z', 59_500_000],
    ['2026-11-16 12:00:00,5 +00:00', 500_000],
    [NOON_US / 1e6, 0],
    [NOON_US / 1e6 + 0.25, 250_000],
    [NOON_US / 1e3, 0],
    [NOON_US, 0],
    [String(NOON_US / 1e6), 0],
    [`${NOON_US / 1e6}.000001`, 1],
    [String(NOON_US / 1e3), 0],
  ])('is read from %j', (value, us) => expect(createTimeReader()(value)).toBe(NOON_US + us))

  it.each([
    '',
    'noon',
    '2026-02-30T00:00:00Z',
    '2026-11-16T25:00:00Z',
    '2026-11-16T12:00:00 somewhere',
    '2026-11-16T12:00:00+99:99',
    '2026-11-16T12:00:00+00:60',
    '2026-11-16T12:00:61Z',
    '2026-11-16T12:00.5Z',
    '2026-11-16T12Z',
    '1969-12-31T23:59:59Z',
    '-5',
    '1e9',
    -1,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    1e17,
    null,
    undefined,
    {},
    true,
  ])('is not read from %j', (value) => expect(createTimeReader()(value)).toBeUndefined())

  it('is read the same after any other', () => {
    const times = fc.array(fc.date({ min: new Date(0), max: new Date(4e12), noInvalidDate: true }))
    fc.assert(
      fc.property(times, (dates) => {
        const read = createTimeReader()
        expect(dates.map((date) => read(date.toISOString()))).toEqual(
          dates.map((date) => date.getTime() * 1_000),
        )
      }),
    )
  })
})

describe('the time of an access log', () => {
  it.each([
    ['16/Nov/2026:12:00:00 +0000', NOON_US],
    ['16/Nov/2026:04:30:00 -0730', NOON_US],
    ['16/Nov/2026:12:00:60 +0000', NOON_US + 59_000_000],
    ['16/Nov/2026:12:00:00 +9999', undefined],
    ['30/Feb/2026:12:00:00 +0000', undefined],
    ['16/Foo/2026:12:00:00 +0000', undefined],
    ['16/Nov/2026 12:00:00 +0000', undefined],
  ])('%s', (text, us) => {
    const read = createCombinedTimeReader()
    expect([read(text), read(text)]).toEqual([us, us])
  })
})
