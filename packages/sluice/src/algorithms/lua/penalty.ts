/**
 * lua is the twin of the penalty. Cells: window start, refusals, blocks, when those are forgotten.
 */
export const lua = `
local t = {}
function t.wait() return 0 end
function t.spend() end
function t.fresh(s, r) return math.max(s[2] > 0 and s[1] + r.per or 0, s[4]) end
function t.punish(s, r, now)
  local is_open = s[2] > 0 and now < s[1] + r.per
  if not is_open then s[1] = now end
  local refusals = is_open and s[2] + 1 or 1
  s[2] = refusals < r.limit and refusals or 0
  if refusals < r.limit then return 0 end
  local before, us, at = now < s[4] and s[3] or 0, 0, 0
  for ms in string.gmatch(r.block, '%d+') do
    if at <= before then us = ms * 1000 end
    at = at + 1
  end
  s[3] = before + 1
  s[4] = now + us + math.max(10 * us, r.per)
  return us
end
return t`
