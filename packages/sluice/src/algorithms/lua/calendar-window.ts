/** lua is the twin of the calendar window: when the period ends, and the units used in it. */
export const lua = `
local t = {}
local floor, DAY = math.floor, 86400000000
local function used_in(s, now) return now < s[1] and s[2] or 0 end
local function day_of(year, month)
  if month >= 12 then year, month = year + 1, month - 12 end
  local leap_days = floor(year / 4) - floor(year / 100) + floor(year / 400)
  return 365 * year + leap_days + floor((153 * month + 2) / 5) - 719468
end
local function end_of(r, now)
  if r.period == 'hour' or r.period == 'day' then return now - now % r.per + r.per end
  local day = floor(now / DAY)
  if r.period == 'week' then return (day + 7 - (day + 3) % 7) * DAY end
  local year = floor((day + 719468) * 400 / 146097)
  if day_of(year + 1, 0) <= day then year = year + 1 end
  local month = floor((5 * (day - day_of(year, 0)) + 2) / 153)
  if r.period == 'month' then return day_of(year, month + 1) * DAY end
  return day_of(month < 10 and year or year + 1, 10) * DAY
end
function t.wait(s, r, cost, now)
  if used_in(s, now) + cost <= r.limit then return 0 end
  return s[1] - now
end
function t.spend(s, r, cost, now)
  local used = used_in(s, now)
  if used == 0 then s[1] = end_of(r, now) end
  s[2] = math.min(used + cost, MOST_COUNT)
end
function t.refund(s, r, cost, now, spent)
  if spent ~= RECENT and end_of(r, spent) ~= s[1] then return end
  s[2] = math.max(0, used_in(s, now) - cost)
end
function t.fresh(s, r) return s[2] == 0 and 0 or s[1] end
return t`
