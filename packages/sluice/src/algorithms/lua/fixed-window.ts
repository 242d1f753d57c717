/** lua is the twin of the fixed window. Cells: when it opened, and the units used in it. */
export const lua = `
local t = {}
local function used_in(s, r, now) return now - s[1] < r.per and s[2] or 0 end
function t.wait(s, r, cost, now)
  if used_in(s, r, now) + cost <= r.limit then return 0 end
  return s[1] + r.per - now
end
function t.spend(s, r, cost, now)
  local used = used_in(s, r, now)
  if used == 0 then s[1] = r.align == 'clock' and now - now % r.per or now end
  s[2] = math.min(used + cost, MOST_COUNT)
end
function t.refund(s, r, cost, now, spent)
  if spent >= s[1] then s[2] = math.max(0, used_in(s, r, now) - cost) end
end
function t.fresh(s, r) return s[2] == 0 and 0 or s[1] + r.per end
return t`
