/** lua is the twin of the calendar window. Cells: when the period ends, and the units used in it. */
export const lua = `
local t = {}
local function used_in(s, now) return now < s[1] and s[2] or 0 end
local function end_of(r, us)
  for i = 1, #r.edges do
    if us < r.edges[i] then return r.edges[i] end
  end
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
