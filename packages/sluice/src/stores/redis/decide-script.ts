import { CLOCK_LINE } from './script.ts'
import { twinsText } from './twins.ts'

/**
 * DECIDE makes any number of calls about different keys, all at one instant of Redis's own clock, and
 * answers with what it found: the row of each key, and the instant. What became of each call follows
 * from that, and the caller works it out with the algorithms' own arithmetic. Where the deadline has
 * passed nothing is done, and the instant is the whole answer.
 *
 * ARGV: the deadline, or 0; the sets of rules that are used, as JSON. Then for each key its calls: a
 * number is a check of that cost by the first set; else `set@` and for each call a letter, an amount,
 * `x` and a second number. KEYS: the names of the rows, whose format is in `rows/codec.ts`.
 *
 * If a row was written for other limits of these rules, or cannot be read, its calls do nothing: the
 * caller sees that from the answer, too. Lines of other rules are copied until they are fresh.
 */
export const DECIDE = `
local deadline = tonumber(ARGV[1])
if deadline > 0 and now > deadline then return { now } end
local call, find, sub, format, match, ceil =
  redis.call, string.find, string.sub, string.format, string.match, math.ceil

local sets = cjson.decode(ARGV[2])
for i = 1, #sets do
  for _, rule in ipairs(sets[i]) do
    rule.twin = twins[rule.algorithm]
    rule.ending = ':' .. rule.label
  end
end

local function whole(text)
  local number = tonumber(text, 16)
  return number and number <= 9007199254740991 and number
end

-- The cells of a line; nil if they are no numbers.
local function read(text, rule)
  if text == '' and rule.cells <= 3 then return rule.twin.grows and {} or { 0, 0, 0 } end
  local a, b, c = match(text, '^(%x+) ?(%x*) ?(%x*)$')
  if a and not rule.twin.grows and rule.cells <= 3 then
    a, b, c = whole(a), b == '' and 0 or whole(b), c == '' and 0 or whole(c)
    return a and b and c and { a, b, c }
  end
  local cells = {}
  for cell in string.gmatch(text, '%x+') do
    cells[#cells + 1] = whole(cell)
    if not cells[#cells] then return nil end
  end
  if rule.twin.grows and #cells % 2 == 1 then return {} end
  for i = #cells + 1, rule.cells do cells[i] = 0 end
  return cells
end

-- Whose cells a line has, as ownerOf tells it.
local function owner(label)
  local text, name = match(label, '^([^\\t]*)\\t?(.*)$')
  local _, spaces = string.gsub(text, ' ', ' ')
  return (spaces % 2 == 1 and match(text, '[^ ]*$') or 'T') .. '\\t' .. name
end

-- A row: its block, the states of a set, and the lines of other rules. nil: not to be touched.
local function open(value, set)
  local row = { block = 0, states = {}, others = {} }
  if not value then
    for i = 1, #set do row.states[i] = read('', set[i]) end
    return row
  end
  local only = #set == 1 and set[1]
  if only and sub(value, -#only.ending) == only.ending then
    local text = sub(value, 1, -#only.ending - 1)
    if find(text, '^%x') and not find(text, '[^%x ]') then
      row.states[1] = read(text, only)
      return row.states[1] and row
    end
  end
  for line in string.gmatch(value .. '\\n', '([^\\n]*)\\n') do
    local block = match(line, '^!(%x+)$')
    local cells, fresh, label = match(line, '^(%x[%x ]*)@?(%x*):(.+)$')
    if block then
      row.block = whole(block)
      if not row.block then return nil end
    elseif not cells then
      return nil
    else
      local known = false
      for i = 1, #set do
        if label == set[i].label then
          known = true
          row.states[i] = read(cells, set[i])
          if not row.states[i] then return nil end
        end
      end
      if not known then
        local whose = owner(label)
        for i = 1, #set do if whose == owner(set[i].label) then return nil end end
        row.others[#row.others + 1] = { cells = cells, fresh = fresh, label = label }
      end
    end
  end
  for i = 1, #set do row.states[i] = row.states[i] or read('', set[i]) end
  return row
end

-- When a line of another rule is fresh that stood alone: when the row expires.
local function expiry(key)
  local at = redis.pcall('PEXPIRETIME', key)
  if type(at) == 'number' and at > 0 then return at end
  -- Before Redis 7 only how long is left is known; without an expiry it is 400 days.
  local left = call('PTTL', key)
  if left < 0 then left = 34560000000 end
  local time = call('TIME')
  return time[1] * 1000 + ceil(time[2] / 1000) + left
end

local function text_of(cells)
  local count = #cells
  while count > 1 and cells[count] == 0 do count = count - 1 end
  if count == 1 then return format('%x', cells[1]) end
  if count == 2 then return format('%x %x', cells[1], cells[2]) end
  local parts = {}
  for i = 1, count do parts[i] = format('%x', cells[i]) end
  return table.concat(parts, ' ')
end

local function save(key, value, row, set)
  if #set == 1 and row.block <= now and #row.others == 0 then
    local rule = set[1]
    local fresh = rule.twin.fresh(row.states[1], rule)
    if fresh > now then
      local text = text_of(row.states[1]) .. rule.ending
      call('SET', key, text, 'PXAT', format('%d', ceil(fresh / 1000)))
    elseif value then
      call('DEL', key)
    end
    return
  end
  local lines, latest = {}, 0
  local function add(cells, fresh, label)
    if fresh * 1000 <= now then return end
    lines[#lines + 1] = { cells, fresh, label }
    latest = math.max(latest, fresh)
  end
  for i = 1, #set do
    local fresh = set[i].twin.fresh(row.states[i], set[i])
    if fresh > now then add(text_of(row.states[i]), ceil(fresh / 1000), set[i].label) end
  end
  for _, line in ipairs(row.others) do
    add(line.cells, line.fresh ~= '' and whole(line.fresh) or expiry(key), line.label)
  end
  local parts, alone = {}, #lines == 1
  if row.block > now then
    alone, latest = false, math.max(latest, ceil(row.block / 1000))
    parts[1] = '!' .. format('%x', row.block)
  end
  for _, line in ipairs(lines) do
    local fresh = alone and '' or '@' .. format('%x', line[2])
    parts[#parts + 1] = line[1] .. fresh .. ':' .. line[3]
  end
  if #parts > 0 then
    call('SET', key, table.concat(parts, '\\n'), 'PXAT', format('%d', latest))
  elseif value then
    call('DEL', key)
  end
end

local function passes(set, states, cost)
  for i = 1, #set do
    local rule = set[i]
    if cost > rule.capacity or rule.twin.wait(states[i], rule, cost, now) > 0 then return false end
  end
  return true
end

local function spend(set, states, cost)
  if cost == 0 then return end
  for i = 1, #set do set[i].twin.spend(states[i], set[i], cost, now) end
end

local function refund(set, states, cost)
  for i = 1, #set do
    local give_back = set[i].twin.refund
    if give_back then give_back(states[i], set[i], cost, now) end
  end
end

-- Makes the calls about one key, and gives its row if it has changed.
local function make(word, set, row)
  local changed = false
  local states = row.states
  for verb, amount, second in string.gmatch(word, '(%a)(%d+)x(%d+)') do
    local units, more = tonumber(amount), tonumber(second)
    if verb == 'c' then
      for _ = 1, more do
        if row.block > now or not passes(set, states, units) then break end
        spend(set, states, units)
        changed = true
      end
    elseif verb == 'l' then
      while more > 0 and not passes(set, states, units + 2 * more) do more = math.floor(more / 2) end
      if row.block <= now and passes(set, states, units) then
        spend(set, states, units + more)
        changed = true
      end
    elseif verb == 'd' then
      spend(set, states, units)
      changed = true
    elseif verb == 'r' then
      if more == 0 or now < more then refund(set, states, units) end
      changed = true
    elseif verb == 'x' then
      row = open(false, set)
      states = row.states
      changed = true
    elseif verb == 'b' then
      row.block = now + units
      changed = true
    elseif verb == 'u' then
      row.block = 0
      changed = true
    end
  end
  return changed and row
end

local values = call('MGET', unpack(KEYS))
for k = 1, #KEYS do
  local word = ARGV[2 + k]
  local cost = tonumber(word)
  local set = sets[1]
  if not cost then
    local which, calls = match(word, '^(%d+)@(.*)$')
    set, word = sets[tonumber(which)], calls
  end
  local row = open(values[k], set)
  -- Without rules nothing is lost: a block, its end or a reset replaces what cannot be read.
  if not row and #set == 0 then row = open(false, set) end
  if row and cost then
    if cost > 0 and row.block <= now and passes(set, row.states, cost) then
      spend(set, row.states, cost)
      save(KEYS[k], values[k], row, set)
    end
  elseif row then
    row = make(word, set, row)
    if row then save(KEYS[k], values[k], row, set) end
  end
end
values[#KEYS + 1] = now
return values
`

/** decideScript is the script with the twins of these algorithms. */
export function decideScript(twins: ReadonlyMap<string, string>, clockLine = CLOCK_LINE): string {
  return `${clockLine}\n${twinsText(twins)}${DECIDE}`
}
