/**
 * slidingWindowCounter is the twin of the sliding counter: when a window began, the units used in
 * it, and those of the window before.
 */
export const slidingWindowCounter = `
local counter = {}
local function window_at(s, r, now) return math.max(s[1], now - now % r.per) end
local function current_at(s, start) return s[1] == start and s[2] or 0 end
local function previous_at(s, r, start)
  if s[1] == start then return s[3] end
  return s[1] == start - r.per and s[2] or 0
end
local function weighed(previous, elapsed, per) return previous - mul_div(previous, elapsed, per) end
local function used_at(s, r, now)
  local start = window_at(s, r, now)
  local elapsed = math.max(0, now - start)
  return current_at(s, start) + weighed(previous_at(s, r, start), elapsed, r.per)
end
local function roll(s, r, now)
  local start = window_at(s, r, now)
  s[1], s[2], s[3] = start, current_at(s, start), previous_at(s, r, start)
end
function counter.wait(s, r, cost, now)
  local start = window_at(s, r, now)
  local elapsed = math.max(0, now - start)
  local current, previous = current_at(s, start), previous_at(s, r, start)
  if current + cost + weighed(previous, elapsed, r.per) <= r.limit then return 0 end
  if current + cost <= r.limit then
    return r.per - mul_div(r.limit - current - cost, r.per, previous) - elapsed
  end
  return 2 * r.per - elapsed - mul_div(r.limit - cost, r.per, current)
end
function counter.spend(s, r, cost, now)
  roll(s, r, now)
  s[2] = math.min(s[2] + cost, MOST_COUNT)
end
function counter.refund(s, r, cost, now)
  roll(s, r, now)
  s[2] = math.max(0, s[2] - cost)
end
function counter.remaining(s, r, now) return math.max(0, r.limit - used_at(s, r, now)) end
function counter.fresh(s, r)
  if s[2] > 0 then return s[1] + 2 * r.per end
  return s[3] > 0 and s[1] + r.per or 0
end
function counter.delay() return 0 end
twins['sliding-window-counter'] = counter
`
