import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { gcd, mulDiv } from './exact.ts'

const upTo45Bits = fc.maxSafeNat().map((n) => n % (2 ** 45 + 1))

describe('mulDiv', () => {
  it('equals the same division in BigInt, whatever the product', () => {
    fc.assert(
      fc.property(upTo45Bits, upTo45Bits, upTo45Bits, (a, b, c) => {
        const exact = (BigInt(a) * BigInt(b)) / BigInt(c + 1)
        fc.pre(c < 2 ** 45 && exact <= BigInt(Number.MAX_SAFE_INTEGER))
        return BigInt(mulDiv(a, b, c + 1)) === exact
      }),
      { numRuns: 5_000 },
    )
  })

  it.each([
    [10_000_000, 34_560_000_000_000, 34_560_000_000_000, 10_000_000],
    [10_000_000, 34_559_999_999_999, 34_560_000_000_000, 9_999_999],
    [2 ** 45, 2 ** 45, 2 ** 45, 2 ** 45],
    [2 ** 45, 2 ** 45 - 1, 2 ** 45, 2 ** 45 - 1],
    [0, 5, 7, 0],
  ])('%i · %i / %i is %i', (a, b, c, quotient) => {
    expect(mulDiv(a, b, c)).toBe(quotient)
  })
})

describe('gcd', () => {
  it('divides both, and what is left has no common divisor', () => {
    const whole = fc.integer({ min: 1, max: 1e9 })
    fc.assert(
      fc.property(whole, whole, (a, b) => {
        const divisor = gcd(a, b)
        return a % divisor === 0 && b % divisor === 0 && gcd(a / divisor, b / divisor) === 1
      }),
    )
  })
})
