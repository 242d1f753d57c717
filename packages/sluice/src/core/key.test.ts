import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkKey, compositeKey } from './key.ts'
import { usableKey } from './usable-key.ts'

describe('checkKey', () => {
  it.each(['a', '\u0000', '\ud800', '__proto__', 'x'.repeat(1_024)])('takes %j', (key) => {
    expect(() => checkKey(key)).not.toThrow()
  })

  it.each(['', 'x'.repeat(1_025), 1, null, undefined, {}, ['a'], Symbol('a')])(
    'refuses %o',
    (key) => {
      expect(() => checkKey(key)).toThrow(expect.objectContaining({ code: 'SLUICE_KEY' }))
    },
  )
})

describe('compositeKey', () => {
  it('joins different lists to different keys, unlike a delimiter', () => {
    expect(compositeKey('a:b', 'c')).not.toBe(compositeKey('a', 'b:c'))
    expect(compositeKey('a', '')).not.toBe(compositeKey('a'))
    const list = fc.array(fc.string({ unit: fc.constantFrom('a', ':', '1', '2', '') }), {
      minLength: 1,
      maxLength: 6,
    })
    fc.assert(
      fc.property(list, list, (one, two) => {
        const same = JSON.stringify(one) === JSON.stringify(two)
        return (compositeKey(...one) === compositeKey(...two)) === same
      }),
      { numRuns: 2_000 },
    )
  })

  it('takes numbers, bigints and booleans as their texts', () => {
    expect(compositeKey('user', 42, true, 7n)).toBe(compositeKey('user', '42', 'true', '7'))
  })

  it('refuses no parts, and other things', () => {
    const bad = expect.objectContaining({ code: 'SLUICE_KEY' })
    expect(() => compositeKey()).toThrow(bad)
    expect(() => compositeKey(undefined as never)).toThrow(bad)
  })

  it('accepts over-long parts, which clients may send, and leaves them to the caller', () => {
    const bad = expect.objectContaining({ code: 'SLUICE_KEY' })
    const key = compositeKey('user', 'x'.repeat(1_024))
    expect(() => checkKey(key)).toThrow(bad)
    expect(() => checkKey(usableKey(key))).not.toThrow()
  })
})
