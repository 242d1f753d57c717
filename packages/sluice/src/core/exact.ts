/** gcd of two positive whole numbers. */
export function gcd(a: number, b: number): number {
  while (b !== 0) [a, b] = [b, a % b]
  return a
}

/** The most units a counter holds, so that `mulDiv` stays exact. Debt stops growing here. */
export const MOST_COUNT = 2 ** 45

const DIGIT_BITS = 7
const DIGIT = 2 ** DIGIT_BITS

/**
 * mulDiv is floor(a · b / c), exact, for whole numbers 0 ≤ a ≤ 2^45, 0 ≤ b ≤ 2^45 and
 * 1 ≤ c ≤ 2^45 whose quotient stays below 2^53, even where a · b does not.
 */
export function mulDiv(a: number, b: number, c: number): number {
  const product = a * b
  // Below 2^53 the quotient of two whole numbers never rounds up to the next whole number.
  if (product <= Number.MAX_SAFE_INTEGER) return Math.floor(product / c)
  // Long division: `rest` and `part` stay below c, so each step stays below 2^53.
  const whole = Math.floor(b / c)
  const part = b - whole * c
  let quotient = 0
  let rest = 0
  for (let bit = 42; bit >= 0; bit -= DIGIT_BITS) {
    const dividend = rest * DIGIT + (Math.floor(a / 2 ** bit) % DIGIT) * part
    const digit = Math.floor(dividend / c)
    quotient = quotient * DIGIT + digit
    rest = dividend - digit * c
  }
  return a * whole + quotient
}
