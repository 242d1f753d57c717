import { describe, expect, it } from 'vitest'
import { durationUs } from './duration.ts'

const read = (value: unknown) => durationUs('per', value, 1, 1_000_000)

describe('durationUs', () => {
  it.each([
    ['250ms', 250_000],
    ['10s', 10_000_000],
    ['1m', 60_000_000],
    [1, 1_000],
    [1.5, 1_500],
    [1.0004, 1_000],
  ])('parses %o as %i µs', (value, us) => {
    expect(read(value)).toBe(us)
  })

  it.each([
    '1',
    '1 s',
    ' 1s',
    '1S',
    '1.5s',
    '-1s',
    '1e3s',
    's',
    '',
    '1w',
    '1sec',
    '１s',
    '9'.repeat(40),
    0,
    -1,
    0.999,
    1_000_001,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    null,
    undefined,
    {},
    [],
    10n,
    '12d',
  ])('refuses %o with a remedy', (value) => {
    expect(() => read(value)).toThrow(
      expect.objectContaining({
        code: 'SLUICE_DURATION',
        message: expect.stringMatching(/such as '90m'/),
      }),
    )
  })
})
