/**
 * exact is the Lua that all twins share: `mul_div` and `mul_sub` of `core/exact.ts`, for products
 * beyond 2^53, and the caps of debt in years and in units.
 */
export const exact = `
local CENTURY = 3155760000000000
local MOST_COUNT = 1125899906842624
local RECENT = 9007199254740991
local function mul_sub(a, b, c, d)
  local floor, HALF = math.floor, 67108864
  local ah, bh, ch, dh = floor(a / HALF), floor(b / HALF), floor(c / HALF), floor(d / HALF)
  local al, bl, cl, dl = a - ah * HALF, b - bh * HALF, c - ch * HALF, d - dh * HALF
  local middle = ah * bl - ch * dl + (al * bh - cl * dh)
  return ((ah * bh - ch * dh) * HALF + middle) * HALF + (al * bl - cl * dl)
end
local function mul_div(a, b, c)
  local product = a * b
  local quotient = math.floor(product / c)
  if product <= 9007199254740991 then return quotient end
  return quotient + math.floor(mul_sub(a, b, c, quotient) / c)
end
`
