/** slidingWindowLog is the twin of the log: microsecond and units of each entry, oldest first. */
export const slidingWindowLog = `
local log = {}
local function units_of(s)
  local units = 0
  for i = 2, #s, 2 do units = units + s[i] end
  return units
end
local function drop_expired(s, r, now)
  local expired = 0
  while expired < #s and s[expired + 1] + r.per <= now do expired = expired + 2 end
  if expired == 0 then return end
  local count = #s
  for i = 1, count do s[i] = s[i + expired] end
end
function log.wait(s, r, cost, now)
  local over = units_of(s) + cost - r.limit
  for i = 1, #s, 2 do
    if over <= 0 then return 0 end
    over = over - s[i + 1]
    if over <= 0 then return math.max(0, s[i] + r.per - now) end
  end
  return 0
end
function log.spend(s, r, cost, now)
  drop_expired(s, r, now)
  if #s > 0 and s[#s - 1] >= now then
    s[#s] = s[#s] + cost
  else
    s[#s + 1] = now
    s[#s + 1] = cost
  end
end
function log.refund(s, r, cost, now)
  drop_expired(s, r, now)
  local left = cost
  while left > 0 and #s > 0 do
    local units = math.min(left, s[#s])
    left = left - units
    s[#s] = s[#s] - units
    if s[#s] == 0 then
      s[#s] = nil
      s[#s] = nil
    end
  end
end
function log.remaining(s, r, now)
  local used = units_of(s)
  for i = 1, #s, 2 do
    if s[i] + r.per > now then break end
    used = used - s[i + 1]
  end
  return math.max(0, r.limit - used)
end
function log.fresh(s, r) return #s == 0 and 0 or s[#s - 1] + r.per end
function log.delay() return 0 end
log.grows = true
twins['sliding-window-log'] = log
`
