/** lua is the twin of the log. Cells: the microsecond and units of each entry, oldest first. */
export const lua = `
local t = { grows = true }
local function drop_expired(s, r, now)
  local expired = 0
  while expired < #s and s[expired + 1] + r.per <= now do expired = expired + 2 end
  if expired == 0 then return end
  local count = #s
  for i = 1, count do s[i] = s[i + expired] end
end
function t.wait(s, r, cost, now)
  local over = cost - r.limit
  for i = 2, #s, 2 do over = over + s[i] end
  for i = 1, #s, 2 do
    if over <= 0 then return 0 end
    over = over - s[i + 1]
    if over <= 0 then return math.max(0, s[i] + r.per - now) end
  end
  return 0
end
function t.spend(s, r, cost, now)
  drop_expired(s, r, now)
  if cost > r.limit then
    local room = MOST_COUNT
    for i = 2, #s, 2 do room = room - s[i] end
    if room <= 0 then return end
    cost = math.min(cost, room)
  end
  if #s > 0 and s[#s - 1] >= now then
    s[#s] = s[#s] + cost
  else
    s[#s + 1] = now
    s[#s + 1] = cost
  end
end
function t.refund(s, r, cost, now, spent)
  drop_expired(s, r, now)
  local left = cost
  for i = #s, 2, -2 do
    if spent == RECENT or spent == s[i - 1] then
      local units = math.min(left, s[i])
      left = left - units
      s[i] = s[i] - units
      if s[i] == 0 then
        table.remove(s, i)
        table.remove(s, i - 1)
      end
    end
  end
end
function t.fresh(s, r) return #s == 0 and 0 or s[#s - 1] + r.per end
return t`
