import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { gcd, mulDiv, mulSub } from './exact.ts'

/** Whole numbers from 0 to 2^52 of every magnitude, and those around powers of two. */
const operand = fc.oneof(
  fc.tuple(fc.maxSafeNat(), fc.nat(52)).map(([n, bits]) => n % (2 ** bits + 1)),
  fc.tuple(fc.nat(52), fc.integer({ min: -2, max: 0 })).map(([bits, off]) => {
    return Math.max(0, 2 ** bits + off)
  }),
)

describe('mulDiv', () => {
  it('equals the same division in BigInt for products of any size', () => {
    fc.assert(
      fc.property(operand, operand, operand, (a, b, c) => {
        fc.pre(c > 0)
        const exact = (BigInt(a) * BigInt(b)) / BigInt(c)
        fc.pre(exact <= 2n ** 52n)
        return BigInt(mulDiv(a, b, c)) === exact
      }),
      { numRuns: 20_000 },
    )
  })

  it('is exact on both sides of a whole quotient', () => {
    fc.assert(
      fc.property(operand, operand, operand, (a, c, off) => {
        fc.pre(a > 0 && c > 0)
        // a · b is about a multiple of c: b is near c · off / a.
        const near = (BigInt(c) * BigInt(off)) / BigInt(a)
        return [-1n, 0n, 1n].every((more) => {
          const b = near + more
          if (b < 0n || b > 2n ** 52n || (BigInt(a) * b) / BigInt(c) > 2n ** 52n) return true
          return BigInt(mulDiv(a, Number(b), c)) === (BigInt(a) * b) / BigInt(c)
        })
      }),
      { numRuns: 20_000 },
    )
  })

  it.each([
    [10_000_000, 34_560_000_000_000, 34_560_000_000_000, 10_000_000],
    [10_000_000, 34_559_999_999_999, 34_560_000_000_000, 9_999_999],
    [999_999_999_989, 86_399_999_000, 86_399_999_000, 999_999_999_989],
    [999_999_999_989, 86_399_998_999, 86_399_999_000, 999_999_999_977],
    [2 ** 52, 2 ** 52, 2 ** 52, 2 ** 52],
    [2 ** 52, 2 ** 52 - 1, 2 ** 52, 2 ** 52 - 1],
    [0, 5, 7, 0],
  ])('%i · %i / %i is %i', (a, b, c, quotient) => {
    expect(mulDiv(a, b, c)).toBe(quotient)
  })
})

describe('mulSub', () => {
  it('is the remainder of a division, exact', () => {
    fc.assert(
      fc.property(operand, operand, operand, (a, b, c) => {
        fc.pre(c > 0 && BigInt(a) * BigInt(b) <= BigInt(c) * 2n ** 52n)
        const quotient = mulDiv(a, b, c)
        return mulSub(a, b, c, quotient) === Number((BigInt(a) * BigInt(b)) % BigInt(c))
      }),
      { numRuns: 20_000 },
    )
  })

  it('is below 0 where the second product is larger', () => {
    expect(mulSub(2 ** 52 - 1, 2 ** 52 - 1, 2 ** 52, 2 ** 52 - 2)).toBe(1)
    expect(mulSub(2 ** 52, 2 ** 52 - 2, 2 ** 52 - 1, 2 ** 52 - 1)).toBe(-1)
  })
})

describe('gcd', () => {
  it('divides both, and the quotients are coprime', () => {
    const whole = fc.integer({ min: 1, max: 1e13 })
    fc.assert(
      fc.property(whole, whole, (a, b) => {
        const divisor = gcd(a, b)
        return a % divisor === 0 && b % divisor === 0 && gcd(a / divisor, b / divisor) === 1
      }),
    )
  })
})
