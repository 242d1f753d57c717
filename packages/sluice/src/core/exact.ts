/** gcd returns the greatest common divisor of two positive whole numbers. */
export function gcd(a: number, b: number): number {
  while (b !== 0) [a, b] = [b, a % b]
  return a
}

/**
 * The most units of a counter, over a thousand times the largest limit: debt is capped here.
 * Two counters together still fit into the operands of `mulDiv`.
 */
export const MOST_COUNT = 2 ** 50

/** Operands up to 2^52 are split here, so that products of their halves stay below 2^52. */
const HALF = 2 ** 26

/**
 * mulDiv returns floor(a · b / c), exact even if a · b exceeds 2^53. Operands and the quotient are
 * whole numbers up to 2^52; c is at least 1.
 */
export function mulDiv(a: number, b: number, c: number): number {
  const product = a * b
  const quotient = Math.floor(product / c)
  // Below 2^53 the quotient of two whole numbers never rounds up to the next whole number.
  if (product <= Number.MAX_SAFE_INTEGER) return quotient
  // Above, it is at most two off; the exact remainder tells by how much.
  return quotient + Math.floor(mulSub(a, b, c, quotient) / c)
}

/**
 * mulSub returns a · b − c · d, exact if the result lies within ±2^53, such as the remainder of a
 * `mulDiv`. Operands are whole numbers up to 2^52. The products of their halves cancel before
 * rounding.
 */
export function mulSub(a: number, b: number, c: number, d: number): number {
  const aHigh = Math.floor(a / HALF)
  const bHigh = Math.floor(b / HALF)
  const cHigh = Math.floor(c / HALF)
  const dHigh = Math.floor(d / HALF)
  const aLow = a - aHigh * HALF
  const bLow = b - bHigh * HALF
  const cLow = c - cHigh * HALF
  const dLow = d - dHigh * HALF
  const high = aHigh * bHigh - cHigh * dHigh
  const middle = aHigh * bLow - cHigh * dLow + (aLow * bHigh - cLow * dHigh)
  return (high * HALF + middle) * HALF + (aLow * bLow - cLow * dLow)
}
