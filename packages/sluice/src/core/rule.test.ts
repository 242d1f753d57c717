import { describe, expect, it } from 'vitest'
import {
  createLimiter,
  fixedWindow,
  gcra,
  leakyBucket,
  type RuleFactory,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
  unlimited,
} from '../index.ts'

const factories = {
  fixedWindow,
  gcra,
  leakyBucket,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
}
const withCode = (code: string) => expect.objectContaining({ name: 'SluiceError', code })

describe.each(Object.entries(factories))('%s', (_, make: (options: never) => unknown) => {
  const made = (options: unknown) => () => make(options as never)

  it.each([
    0,
    -1,
    1.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    '100',
    null,
    undefined,
    1_000_000_000_001,
    5n,
  ])('refuses the limit %o', (limit) => {
    expect(made({ limit, per: '1s' })).toThrow(withCode('SLUICE_RULE_LIMIT'))
  })

  it.each([0, -1, 0.5, Number.NaN, '1', '1w', '', null, undefined, '401d', 400 * 86_400_000 + 1])(
    'refuses the per %o',
    (per) => {
      expect(made({ limit: 1, per })).toThrow(withCode('SLUICE_DURATION'))
    },
  )

  it.each(['', 'x'.repeat(65), 'a\nb', 'é', 5, null])('refuses the name %o', (name) => {
    expect(made({ limit: 1, per: '1s', name })).toThrow(withCode('SLUICE_RULE_NAME'))
  })

  it.each([{ limt: 1 }, { Limit: 1 }, { window: '1s' }])(
    'refuses the misspelt option %o',
    (extra) => {
      expect(made({ limit: 1, per: '1s', ...extra })).toThrow(withCode('SLUICE_OPTION'))
    },
  )

  it.each([undefined, null, 5, 'x', []])('refuses %o in place of options', (options) => {
    expect(made(options)).toThrow(withCode('SLUICE_OPTION'))
  })

  it('names itself after its algorithm, unless told otherwise', () => {
    expect(make({ limit: 1, per: '1s', name: 'api' } as never)).toHaveProperty('name', 'api')
    expect(make({ limit: 1, per: '1s' } as never)).toHaveProperty(
      'name',
      expect.stringMatching(/^[a-z-]+$/),
    )
  })

  it('is frozen', () => {
    expect(Object.isFrozen(make({ limit: 1, per: '1s' } as never))).toBe(true)
  })
})

describe('a rule', () => {
  it.each([0, -1, 1.5, '5', Number.NaN, 1_000_000_000_001, null])(
    'refuses the burst %o',
    (burst) => {
      for (const make of [tokenBucket, gcra]) {
        expect(() => make({ limit: 1, per: '1s', burst: burst as never })).toThrow(
          withCode('SLUICE_RULE_BURST'),
        )
      }
    },
  )

  it.each([-1, 1.5, '5', Number.NaN, 1_000_000_000_001, null])('refuses the queue %o', (queue) => {
    expect(() => leakyBucket({ limit: 1, per: '1s', queue: queue as never })).toThrow(
      withCode('SLUICE_RULE_QUEUE'),
    )
  })

  it('refuses an option of another algorithm', () => {
    const options = { limit: 1, per: '1s', burst: 2 } as never
    expect(() => fixedWindow(options)).toThrow(withCode('SLUICE_OPTION'))
    expect(() => leakyBucket(options)).toThrow(withCode('SLUICE_OPTION'))
    expect(() => fixedWindow({ limit: 1, per: '1s', align: 'utc' as never })).toThrow(
      withCode('SLUICE_OPTION'),
    )
  })

  it('refuses a log that would be too long', () => {
    expect(() => slidingWindowLog({ limit: 10_001, per: '1s' })).toThrow(
      withCode('SLUICE_RULE_LIMIT'),
    )
    expect(slidingWindowLog({ limit: 10_000, per: '1s' }).capacity).toBe(10_000)
  })

  it('refuses a time to fresh of over a hundred years, and nothing below', () => {
    const year = (burst: number) => tokenBucket({ limit: 1, per: '365d', burst })
    expect(year(100).fullUs).toBe(100 * 365 * 86_400_000_000)
    expect(() => year(101)).toThrow(withCode('SLUICE_RULE_RANGE'))
    expect(leakyBucket({ limit: 1_000_000_000_000, per: '1s' }).capacity).toBe(1_000_000_000_001)
    expect(() => leakyBucket({ limit: 1, per: '400d', queue: 999_999_999_999 })).toThrow(
      withCode('SLUICE_RULE_RANGE'),
    )
  })

  it('knows its gap exactly', () => {
    const { gapUs, gapRest, gapParts } = tokenBucket({ limit: 7, per: '1s' })
    expect([gapUs, gapRest, gapParts]).toEqual([142_857, 1, 7])
    expect(tokenBucket({ limit: 100, per: '1m' })).toMatchObject({ gapUs: 600_000, gapParts: 1 })
  })

  it('has the same fields in the same order whatever the factory, for monomorphic call sites', () => {
    const made = [
      ...(Object.values(factories) as RuleFactory[]).map((make) => make({ limit: 1, per: '1s' })),
      unlimited(),
    ]
    const shapes = made.map((rule) => [Object.keys(rule), Object.keys(rule.algorithm)].join())
    expect(new Set(shapes).size).toBe(1)
  })

  it('cannot share its name with another rule of the limiter', () => {
    const rule = tokenBucket({ limit: 1, per: '1s' })
    expect(() => createLimiter([rule, rule])).toThrow(withCode('SLUICE_RULE_DUPLICATE'))
  })
})
