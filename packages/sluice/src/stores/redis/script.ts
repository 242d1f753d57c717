import { twins } from './twins/twins.ts'

/** CLOCK_LINE is the one line that reads the time; tests replace it. */
export const CLOCK_LINE = "local time = redis.call('TIME') local now = time[1] * 1000000 + time[2]"

/**
 * script decides any number of calls, all at one instant of Redis's own clock.
 *
 * ARGV: how many rules, and for each its algorithm, limit, per, capacity, alignment, gap, the
 * gap's rest and parts, full, its rest, and the number of its figures. Then for each call: what to
 * do, its cost (a duration for a block), how many rules, which ones, and how many of these bring a
 * state that the caller has carried over from other figures: which, the value it was read from, and
 * the new one. KEYS: for each call the key of its block, and of each of its rules' states.
 *
 * It answers for each call {blocked, wait, remaining, reset, delay, …} in microseconds and units, or
 * {-1, now, value, value, …} when states are of other figures than these: the caller knows how to
 * carry them over, and asks again.
 *
 * A state is the number of its figures and its cells, in decimal. A single cell is followed by
 * three digits of the number instead, so that Redis keeps it as an integer.
 */
export const script = `
local twins = {}
${twins}
${CLOCK_LINE}
local values = redis.call('MGET', unpack(KEYS))
local at = 0
local function argument()
  at = at + 1
  return ARGV[at]
end
local function number() return tonumber(argument()) end

local rules = {}
for i = 1, number() do
  local name = argument()
  rules[i] = {
    twin = twins[name], limit = number(), per = number(), capacity = number(),
    aligned = number(), gap = number(), rest = number(), parts = number(),
    full = number(), full_rest = number(), id = number(),
  }
end

local function decode(value)
  if not value then return nil, {} end
  if not string.find(value, ' ', 1, true) then
    return tonumber(string.sub(value, -3)), { tonumber(string.sub(value, 1, -4)) }
  end
  local id, cells = nil, {}
  for part in string.gmatch(value, '%d+') do
    if id then cells[#cells + 1] = tonumber(part) else id = tonumber(part) end
  end
  return id, cells
end

local function encode(id, cells)
  if #cells == 1 and id < 1000 then return string.format('%.0f%03d', cells[1], id) end
  local parts = { string.format('%d', id) }
  for i = 1, #cells do parts[i + 1] = string.format('%.0f', cells[i]) end
  return table.concat(parts, ' ')
end

local states = {}
local function state_of(key, value, rule)
  local state = states[key]
  if state then return state end
  local id, cells = decode(value)
  state = { value = value, id = id or rule.id, cells = cells }
  states[key] = state
  return state
end

local function pad(cells, rule)
  if rule.twin.grows then return end
  for i = 1, 3 do cells[i] = cells[i] or 0 end
end

local function save(key, state, rule)
  local fresh = rule.twin.fresh(state.cells, rule)
  if fresh <= now then
    if state.value then redis.call('DEL', key) end
    state.value, state.cells = false, {}
    return
  end
  local cells = state.cells
  if not rule.twin.grows then
    cells = { state.cells[1] }
    if rule.parts ~= 1 or state.cells[2] ~= 0 or state.cells[3] ~= 0 then cells[2] = state.cells[2] end
    if state.cells[3] ~= 0 then cells[3] = state.cells[3] end
  end
  state.value = encode(rule.id, cells)
  redis.call('SET', key, state.value, 'PXAT', string.format('%.0f', math.ceil(fresh / 1000)))
end

local answers, k = {}, 0
while at < #ARGV do
  local verb, cost, count = argument(), number(), number()
  local block_key, block = KEYS[k + 1], values[k + 1]
  local list, unknown = {}, { -1, now }
  for i = 1, count do
    local rule = rules[number()]
    local key = KEYS[k + 1 + i]
    local state = state_of(key, values[k + 1 + i], rule)
    list[i] = { key = key, rule = rule, state = state }
  end
  for _ = 1, number() do
    local one, was, carried = list[number()], argument(), argument()
    if one.state.value == was then
      local _, cells = decode(carried)
      one.state.cells, one.state.id, one.state.carried = cells, one.rule.id, true
    end
  end
  k = k + 1 + count
  local is_known = true
  for i = 1, count do
    local one = list[i]
    if one.state.id ~= one.rule.id then is_known = false end
    unknown[i + 2] = one.state.id ~= one.rule.id and one.state.value or ''
    pad(one.state.cells, one.rule)
  end
  local until_us = states[block_key] or tonumber(block or 0)
  local blocked = math.max(0, until_us - now)
  local answer = { blocked }
  if verb == 'block' then
    redis.call('SET', block_key, string.format('%.0f', now + cost), 'PXAT',
      string.format('%.0f', math.ceil((now + cost) / 1000)))
    states[block_key] = now + cost
  elseif verb == 'unblock' or verb == 'reset' then
    redis.call('DEL', block_key)
    states[block_key] = 0
    for i = 1, count do
      redis.call('DEL', list[i].key)
      states[list[i].key] = nil
      list[i].state.value, list[i].state.cells = false, {}
    end
  elseif not is_known then
    answer = unknown
  else
    local longest = 0
    for i = 1, count do
      local rule, cells = list[i].rule, list[i].state.cells
      local wait = rule.twin.wait(cells, rule, cost, now)
      longest = math.max(longest, wait)
      answer[4 * i - 2] = wait
      answer[4 * i + 1] = cost == 0 and 0 or rule.twin.delay(cells, rule, now)
    end
    local spends = verb == 'charge' or (verb == 'check' and blocked == 0 and longest == 0)
    for i = 1, count do
      local one = list[i]
      local rule, cells = one.rule, one.state.cells
      if spends and cost > 0 then rule.twin.spend(cells, rule, cost, now) end
      if verb == 'refund' and one.state.value then rule.twin.refund(cells, rule, cost, now) end
      if (spends and cost > 0) or verb == 'refund' or (one.state.carried and verb ~= 'peek') then
        save(one.key, one.state, rule)
        pad(one.state.cells, rule)
      end
      answer[4 * i - 1] = rule.twin.remaining(cells, rule, now)
      answer[4 * i] = math.max(0, rule.twin.fresh(cells, rule) - now)
    end
  end
  answers[#answers + 1] = answer
end
return answers
`
