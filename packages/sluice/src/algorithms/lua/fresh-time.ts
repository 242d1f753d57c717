/**
 * The state of token bucket, GCRA and leaky bucket is the instant of freshness: whole microseconds
 * and, where the gap is not whole, a fraction over `parts`.
 */
const arithmetic = `
local t = {}
local floor, MOST_PARTS = math.floor, 4503599627370496
local function carried_of(units, r)
  local parts = units * r.rest
  return parts <= MOST_PARTS and 0 or floor(parts / r.parts)
end
local function parts_of(units, r)
  local parts = units * r.rest
  if parts <= MOST_PARTS then return parts end
  return mul_sub(units, r.rest, carried_of(units, r), r.parts)
end
function t.wait(s, r, cost, now)
  local ahead = (s[1] > now and s[1] - now or 0) + cost * r.gap - r.full
  if r.parts == 1 then return ahead > 0 and ahead or 0 end
  local parts = (s[1] >= now and s[2] or 0) + parts_of(cost, r) - r.full_rest
  local carried = floor(parts / r.parts)
  local whole = ahead + carried + carried_of(cost, r)
  return math.max(0, parts > carried * r.parts and whole + 1 or whole)
end
function t.spend(s, r, cost, now)
  local sum = (s[1] > now and s[1] or now) + cost * r.gap
  if r.parts ~= 1 then
    local parts = (s[1] >= now and s[2] or 0) + parts_of(cost, r)
    local carried = floor(parts / r.parts)
    sum = sum + carried + carried_of(cost, r)
    s[2] = parts - carried * r.parts
  end
  s[1] = sum
  if sum - now >= CENTURY then s[1], s[2] = now + CENTURY, 0 end
end
function t.refund(s, r, cost, now, spent)
  if s[1] < now then return end
  local left, parts = s[1] - cost * r.gap + math.max(0, now - spent), 0
  if r.parts ~= 1 then
    parts = s[2] - parts_of(cost, r)
    local carried = floor(parts / r.parts)
    left = left + carried - carried_of(cost, r)
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

/** leakyBucketLua gives nothing back: its slots are given out. */
export const leakyBucketLua = `${arithmetic}t.refund = nil\nreturn t`
