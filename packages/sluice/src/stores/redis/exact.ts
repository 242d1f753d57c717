/**
 * exact is what twins share: floor(a · b / c) where a · b leaves 2^53, as in `exact.ts`, and the
 * hundred years at which debt stops growing.
 */
export const exact = `
local CENTURY = 3155760000000000
local MOST_COUNT = 35184372088832
local RECENT = 9007199254740991
local function mul_div(a, b, c)
  local product = a * b
  if product <= 9007199254740991 then return math.floor(product / c) end
  local whole = math.floor(b / c)
  local part = b - whole * c
  local quotient, rest = 0, 0
  for bit = 42, 0, -7 do
    local dividend = rest * 128 + (math.floor(a / 2 ^ bit) % 128) * part
    local digit = math.floor(dividend / c)
    quotient = quotient * 128 + digit
    rest = dividend - digit * c
  end
  return a * whole + quotient
end
`
