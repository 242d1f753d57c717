/**
 * The state of token bucket, GCRA and leaky bucket is the instant at which the key is fresh: whole
 * microseconds and, if the gap is not whole, a numerator over `parts`.
 */
const arithmetic = `
local t = {}
local floor, MOST_PARTS = math.floor, 4503599627370496
-- For a sum over MOST_PARTS: the parts left, and the whole microseconds, which may be one off.
local function split(units, r)
  local whole = floor(units * r.rest / r.parts)
  return mul_sub(units, r.rest, whole, r.parts), whole
end
function t.wait(s, r, cost, now)
  local ahead = (s[1] > now and s[1] - now or 0) + cost * r.gap - r.full
  if r.parts == 1 then return ahead > 0 and ahead or 0 end
  local parts, whole = cost * r.rest, 0
  if parts > MOST_PARTS then parts, whole = split(cost, r) end
  parts = (s[1] >= now and s[2] or 0) + parts - r.full_rest
  local carried = floor(parts / r.parts)
  return math.max(0, ahead + whole + carried + (parts > carried * r.parts and 1 or 0))
end
function t.spend(s, r, cost, now)
  local sum = (s[1] > now and s[1] or now) + cost * r.gap
  if r.parts ~= 1 then
    local parts, whole = cost * r.rest, 0
    if parts > MOST_PARTS then parts, whole = split(cost, r) end
    parts = (s[1] >= now and s[2] or 0) + parts
    local carried = floor(parts / r.parts)
    sum = sum + whole + carried
    s[2] = parts - carried * r.parts
  end
  s[1] = sum
  if sum - now >= CENTURY then s[1], s[2] = now + CENTURY, 0 end
end
function t.refund(s, r, cost, now, spent)
  if s[1] < now then return end
  local left, parts = s[1] - cost * r.gap + math.max(0, now - spent), 0
  if r.parts ~= 1 then
    local back, whole = cost * r.rest, 0
    if back > MOST_PARTS then back, whole = split(cost, r) end
    parts = s[2] - back
    local carried = floor(parts / r.parts)
    left = left - whole + carried
    parts = parts - carried * r.parts
  end
  if left > s[1] or left == s[1] and parts >= s[2] then return end
  s[1] = math.max(left, now)
  s[2] = left < now and 0 or parts
end
function t.fresh(s, r) return (r.parts ~= 1 and s[2] > 0) and s[1] + 1 or s[1] end
`

/** bucketLua is the twin of token bucket and GCRA. */
export const bucketLua = `${arithmetic}return t`

/** leakyBucketLua is the twin of the leaky bucket, which gives no slot back. */
export const leakyBucketLua = `${arithmetic}t.refund = nil\nreturn t`
