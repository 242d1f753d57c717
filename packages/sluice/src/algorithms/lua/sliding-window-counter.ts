/**
 * lua is the twin of the sliding window counter. Cells: when the window began, the units used in it,
 * and the units of the window before.
 */
export const lua = `
local t = {}
local function window_at(s, r, now) return math.max(s[1], now - now % r.per) end
local function current_at(s, start) return s[1] == start and s[2] or 0 end
local function previous_at(s, r, start)
  if s[1] == start then return s[3] end
  return s[1] == start - r.per and s[2] or 0
end
local function roll(s, r, now)
  local start = window_at(s, r, now)
  s[1], s[2], s[3] = start, current_at(s, start), previous_at(s, r, start)
end
function t.wait(s, r, cost, now)
  local start = window_at(s, r, now)
  local elapsed = math.max(0, now - start)
  local current, previous = current_at(s, start), previous_at(s, r, start)
  local weighed = previous - mul_div(previous, elapsed, r.per)
  if current + cost + weighed <= r.limit then return 0 end
  if current + cost <= r.limit then
    return r.per - mul_div(r.limit - current - cost, r.per, previous) - elapsed
  end
  return 2 * r.per - elapsed - mul_div(r.limit - cost, r.per, current)
end
function t.spend(s, r, cost, now)
  roll(s, r, now)
  s[2] = math.min(s[2] + cost, MOST_COUNT)
end
function t.refund(s, r, cost, now, spent)
  roll(s, r, now)
  local since = s[1] - spent
  local counted = since <= 0 and 2 or 3
  if since <= r.per then s[counted] = math.max(0, s[counted] - cost) end
end
function t.fresh(s, r)
  if s[2] > 0 then return s[1] + 2 * r.per end
  return s[3] > 0 and s[1] + r.per or 0
end
return t`
