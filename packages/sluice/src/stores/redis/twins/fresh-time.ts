/**
 * freshTime is the twin of token bucket, GCRA and leaky bucket: the instant of freshness, whole
 * microseconds and, where the gap is not whole, a fraction over `parts`.
 */
export const freshTime = `
local fresh_time = {}
function fresh_time.wait(s, r, cost, now)
  local ahead = (s[1] > now and s[1] - now or 0) + cost * r.gap - r.full
  if r.parts == 1 then return math.max(ahead, 0) end
  local parts = (s[1] >= now and s[2] or 0) + cost * r.rest - r.full_rest
  local carried = math.floor(parts / r.parts)
  return math.max(0, ahead + carried + (parts > carried * r.parts and 1 or 0))
end
function fresh_time.spend(s, r, cost, now)
  local sum = math.max(s[1], now) + cost * r.gap
  if r.parts ~= 1 then
    local parts = (s[1] >= now and s[2] or 0) + cost * r.rest
    local carried = math.floor(parts / r.parts)
    sum = sum + carried
    s[2] = parts - carried * r.parts
  end
  s[1] = sum
  if sum - now > CENTURY then s[1], s[2] = now + CENTURY, 0 end
end
function fresh_time.refund(s, r, cost, now)
  if s[1] < now then return end
  local left = s[1] - cost * r.gap
  if r.parts ~= 1 then
    local parts = s[2] - cost * r.rest
    local carried = math.floor(parts / r.parts)
    left = left + carried
    s[2] = left < now and 0 or parts - carried * r.parts
  end
  s[1] = math.max(left, now)
end
local function fits(units, left, rest, r)
  local carried = math.floor(units * r.rest / r.parts)
  local whole = units * r.gap + carried
  return whole < left or (whole == left and units * r.rest - carried * r.parts <= rest)
end
function fresh_time.remaining(s, r, now)
  local left = r.full - (s[1] > now and s[1] - now or 0)
  if r.parts == 1 then return left > 0 and math.floor(left / r.gap) or 0 end
  local rest = r.full_rest - (s[1] >= now and s[2] or 0)
  if rest < 0 then rest, left = rest + r.parts, left - 1 end
  if left < 0 then return 0 end
  local units = math.floor((left + rest / r.parts) / (r.gap + r.rest / r.parts))
  if fits(units + 1, left, rest, r) then return units + 1 end
  return fits(units, left, rest, r) and units or units - 1
end
function fresh_time.fresh(s, r)
  return (r.parts ~= 1 and s[2] > 0) and s[1] + 1 or s[1]
end
function fresh_time.delay() return 0 end
twins['token-bucket'] = fresh_time
twins['gcra'] = fresh_time
local leaky = {}
for name, verb in pairs(fresh_time) do leaky[name] = verb end
function leaky.delay(s, r, now) return math.max(0, fresh_time.fresh(s, r) - now) end
function leaky.refund() end
twins['leaky-bucket'] = leaky
`
