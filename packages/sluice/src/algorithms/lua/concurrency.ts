/**
 * lua is the twin of concurrency. Cells: the generation, the newest slot, the units of five slots.
 */
export const lua = `
local t = { holds = true }
local floor, max, SLOTS, RING = math.floor, math.max, 4, 5
local function slot_us(r) return math.ceil(r.per / SLOTS) end
local function end_of(slot, r) return (slot + RING) * slot_us(r) end
local function newest_at(s, r, now) return max(s[2], floor(now / slot_us(r))) end
function t.wait(s, r, cost, now)
  local newest = newest_at(s, r, now)
  local first, over = max(0, newest - SLOTS), cost - r.limit
  for slot = first, s[2] do over = over + s[3 + slot % RING] end
  for slot = first, s[2] do
    if over <= 0 then return 0 end
    over = over - s[3 + slot % RING]
    if over <= 0 then return end_of(slot, r) - now end
  end
  return 0
end
function t.spend(s, r, cost, now)
  local newest = newest_at(s, r, now)
  for slot = max(s[2] + 1, newest - SLOTS), newest do s[3 + slot % RING] = 0 end
  s[2] = newest
  s[3 + newest % RING] = s[3 + newest % RING] + cost
end
function t.release(s, r, cost, slot, now)
  local at = 3 + slot % RING
  if slot > s[2] or slot < s[2] - SLOTS or s[at] < cost or now >= end_of(slot, r) then return false end
  s[at] = s[at] - cost
  return true
end
function t.fresh(s, r)
  for slot = s[2], max(0, s[2] - SLOTS), -1 do
    if s[3 + slot % RING] > 0 then return end_of(slot, r) end
  end
  return 0
end
return t`
