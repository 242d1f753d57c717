import { twinsText } from './twins.ts'

/** CLOCK_LINE is the one line that reads the time; tests replace it. */
export const CLOCK_LINE = "local time = redis.call('TIME') local now = time[1] * 1000000 + time[2]"

/**
 * decideScript makes any number of calls about different keys, all at one instant of Redis's own
 * clock, and answers with what it found: the value of each key, and the instant. What became of
 * each call follows from that, and the caller works it out with the algorithms' own arithmetic.
 * Where the deadline has passed nothing is done, and the instant is the whole answer.
 *
 * ARGV: the deadline, or 0; the sets of rules that are used, as JSON. Then for each key its calls: a
 * number is a check of that cost by the first set; else `set@` and for each call a letter, an amount,
 * `x` and a second number. KEYS: for each key the name of its block, and of each of its rules' states.
 *
 * A state is the number of its figures, and its cells in decimal. A single cell is followed by the
 * number instead, in three digits, so that Redis keeps it as an integer. If one state of a key has
 * other figures than these, its calls do nothing: the caller sees that from the answer, too.
 */
const decide = `
local deadline = tonumber(ARGV[1])
if deadline > 0 and now > deadline then return { now } end
local call, find, sub, format, ceil = redis.call, string.find, string.sub, string.format, math.ceil

local sets = cjson.decode(ARGV[2])
for i = 1, #sets do
  for _, rule in ipairs(sets[i]) do rule.twin = twins[rule.algorithm] end
end

local function whole(text)
  local number = tonumber(text)
  return number and number >= 0 and number <= 9007199254740991 and number or 0
end

local function read(value, rule)
  if not value then
    if rule.cells <= 3 then return rule.cells > 0 and { 0, 0, 0 } or {} end
  elseif not find(value, ' ', 1, true) then
    if sub(value, -3) ~= rule.id then return nil end
    if rule.cells <= 3 then return { whole(sub(value, 1, -4)), 0, 0 } end
    value = sub(value, -3) .. ' ' .. sub(value, 1, -4)
  elseif string.match(value, '^%d+') ~= rule.id then
    return nil
  end
  local cells = {}
  for cell in string.gmatch(value or '', ' (%d+)') do cells[#cells + 1] = whole(cell) end
  if rule.twin.grows and #cells % 2 == 1 then return {} end
  for i = #cells + 1, rule.cells do cells[i] = 0 end
  return cells
end

local function save(key, value, cells, rule)
  local fresh = rule.twin.fresh(cells, rule)
  if fresh <= now then
    if value then call('DEL', key) end
    return
  end
  local count, text = #cells, nil
  while count > 1 and cells[count] == 0 do count = count - 1 end
  if count == 1 and #rule.id == 3 then
    text = format('%d%s', cells[1], rule.id)
  else
    local parts = { rule.id }
    for i = 1, count do parts[i + 1] = format('%d', cells[i]) end
    text = table.concat(parts, ' ')
  end
  call('SET', key, text, 'PXAT', format('%d', ceil(fresh / 1000)))
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

-- Makes the calls about one key, whose block is KEYS[k], and says whether its states have changed.
local function make(word, set, states, block, k)
  local changed = false
  for verb, amount, second in string.gmatch(word, '(%a)(%d+)x(%d+)') do
    local units, more = tonumber(amount), tonumber(second)
    if verb == 'b' then
      block = now + units
      call('SET', KEYS[k], format('%d', block), 'PXAT', format('%d', ceil(block / 1000)))
    elseif verb == 'u' then
      block = 0
      call('DEL', KEYS[k])
    elseif verb == 'x' then
      call('DEL', unpack(KEYS, k, k + #set))
    elseif not states or verb == 'p' then
      -- Nothing to write.
    elseif verb == 'c' then
      for _ = 1, more do
        if block > now or not passes(set, states, units) then break end
        spend(set, states, units)
        changed = true
      end
    elseif verb == 'l' then
      while more > 0 and not passes(set, states, units + 2 * more) do more = math.floor(more / 2) end
      if block <= now and passes(set, states, units) then
        spend(set, states, units + more)
        changed = true
      end
    elseif verb == 'd' then
      spend(set, states, units)
      changed = true
    elseif verb == 'r' then
      if more == 0 or now < more then refund(set, states, units) end
      changed = true
    end
  end
  return changed
end

local values = call('MGET', unpack(KEYS))
local k = 1
for a = 3, #ARGV do
  local word = ARGV[a]
  local cost = tonumber(word)
  local set = sets[1]
  if not cost then
    local which, calls = string.match(word, '^(%d+)@(.*)$')
    set, word = sets[tonumber(which)], calls
  end
  local count, states = #set, {}
  for i = 1, count do
    local cells = read(values[k + i], set[i])
    if not cells then
      states = nil
      break
    end
    states[i] = cells
  end
  local block = values[k] and whole(values[k]) or 0
  local changed = false
  if not cost then
    changed = make(word, set, states, block, k)
  elseif states and block <= now and passes(set, states, cost) then
    spend(set, states, cost)
    changed = cost > 0
  end
  if changed then
    for i = 1, count do save(KEYS[k + i], values[k + i], states[i], set[i]) end
  end
  k = k + 1 + count
end
values[#KEYS + 1] = now
return values
`

/** decideScript is the script with the twins of these algorithms. */
export function decideScript(twins: ReadonlyMap<string, string>, clockLine = CLOCK_LINE): string {
  return `${clockLine}\n${twinsText(twins)}${decide}`
}

/**
 * A script for what most trips are: one check by one rule whose state is a single instant of
 * freshness. It does what the other one would do, in half the time.
 *
 * ARGV: the deadline, or 0; the number of the rule's figures; how far the cost moves the instant, and
 * how far ahead it may lie at most, in microseconds. KEYS and the answer are as above.
 */
const one = `
local deadline = tonumber(ARGV[1])
if deadline > 0 and now > deadline then return { now } end
local values = redis.call('MGET', KEYS[1], KEYS[2])
local block, value, id, fresh = values[1], values[2], ARGV[2], now
values[3] = now
if value then
  local number, cell = string.sub(value, -3), string.sub(value, 1, -4)
  if string.find(value, ' ', 1, true) then number, cell = string.match(value, '^(%d+) (%d+)') end
  if number ~= id then return values end
  cell = tonumber(cell)
  if cell and cell > now and cell <= 9007199254740991 then fresh = cell end
end
fresh = fresh + ARGV[3]
block = block and tonumber(block)
local is_blocked = block and block > now and block <= 9007199254740991
if fresh - now <= tonumber(ARGV[4]) and not is_blocked then
  redis.call('SET', KEYS[2], string.format('%d%s', fresh, id), 'PXAT',
    string.format('%d', math.ceil(fresh / 1000)))
end
return values
`

/** oneScript is the script for one check by one rule. */
export function oneScript(clockLine = CLOCK_LINE): string {
  return `${clockLine}${one}`
}

/**
 * swapScript replaces states by those that were carried over to other figures, as long as nobody
 * was faster. ARGV: for each key the value that was read, the new one, and when that is fresh, in
 * milliseconds.
 */
export const swapScript = `
for i, key in ipairs(KEYS) do
  if redis.call('GET', key) == ARGV[3 * i - 2] then
    redis.call('SET', key, ARGV[3 * i - 1], 'PXAT', ARGV[3 * i])
  end
end
return 0
`
