/** fixedWindow is the twin of the fixed window: when it opened, and the units used in it. */
export const fixedWindow = `
local fixed = {}
local function used_in(s, r, now) return now - s[1] < r.per and s[2] or 0 end
function fixed.wait(s, r, cost, now)
  if used_in(s, r, now) + cost <= r.limit then return 0 end
  return s[1] + r.per - now
end
function fixed.spend(s, r, cost, now)
  local used = used_in(s, r, now)
  if used == 0 then s[1] = r.aligned == 1 and now - now % r.per or now end
  s[2] = math.min(used + cost, MOST_COUNT)
end
function fixed.refund(s, r, cost, now) s[2] = math.max(0, used_in(s, r, now) - cost) end
function fixed.remaining(s, r, now) return math.max(0, r.limit - used_in(s, r, now)) end
function fixed.fresh(s, r) return s[2] == 0 and 0 or s[1] + r.per end
function fixed.delay() return 0 end
twins['fixed-window'] = fixed
`
