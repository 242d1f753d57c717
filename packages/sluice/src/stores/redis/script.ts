import { twinsText } from './twins/twins.ts'

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

local sets = cjson.decode(ARGV[2])
local find, sub, match, gmatch = string.find, string.sub, string.match, string.gmatch
local format, ceil, call = string.format, math.ceil, redis.call

local function read(value, rule)
  local cells, count = {}, 0
  if value and find(value, ' ', 1, true) then
    if match(value, '^%d+') ~= rule.id then return nil end
    for cell in gmatch(value, ' (%d+)') do
      count = count + 1
      cells[count] = tonumber(cell)
    end
  elseif value then
    if sub(value, -3) ~= rule.id then return nil end
    cells[1] = tonumber(sub(value, 1, -4)) or 0
    count = 1
  end
  for i = count + 1, rule.cells do cells[i] = 0 end
  return cells
end

local function save(key, value, cells, rule)
  local fresh = twins[rule.algorithm].fresh(cells, rule)
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

local set, states
local function passes(cost)
  for i = 1, #set do
    local rule = set[i]
    if cost > rule.capacity or twins[rule.algorithm].wait(states[i], rule, cost, now) > 0 then return false end
  end
  return true
end
local function spend(cost)
  if cost == 0 then return end
  for i = 1, #set do twins[set[i].algorithm].spend(states[i], set[i], cost, now) end
end
local function refund(cost)
  for i = 1, #set do
    local give_back = twins[set[i].algorithm].refund
    if give_back then give_back(states[i], set[i], cost, now) end
  end
end

local values = call('MGET', unpack(KEYS))
local k = 1
for a = 3, #ARGV do
  local word = ARGV[a]
  local cost = tonumber(word)
  set = sets[1]
  if not cost then
    local which, calls = match(word, '^(%d+)@(.*)$')
    set, word = sets[tonumber(which)], calls
  end
  local count, is_known = #set, true
  states = {}
  for i = 1, count do
    local cells = read(values[k + i], set[i])
    states[i] = cells
    is_known = is_known and cells
  end
  local block = tonumber(values[k] or 0) or 0
  local changed = false
  if cost then
    if is_known and block <= now and passes(cost) then
      spend(cost)
      changed = cost > 0
    end
  else
    for verb, amount, second in gmatch(word, '(%a)(%d+)x(%d+)') do
      local units, more = tonumber(amount), tonumber(second)
      if verb == 'b' then
        block = now + units
        call('SET', KEYS[k], block, 'PXAT', ceil(block / 1000))
      elseif verb == 'u' then
        block = 0
        call('DEL', KEYS[k])
      elseif verb == 'x' then
        call('DEL', unpack(KEYS, k, k + count))
      elseif not is_known or verb == 'p' then
        -- Nothing to write.
      elseif verb == 'c' then
        for _ = 1, more do
          if block > now or not passes(units) then break end
          spend(units)
          changed = true
        end
      elseif verb == 'l' then
        while more > 0 and not passes(units + 2 * more) do more = math.floor(more / 2) end
        if block <= now and passes(units) then
          spend(units + more)
          changed = true
        end
      elseif verb == 'd' then
        spend(units)
        changed = true
      elseif verb == 'r' then
        if more == 0 or now < more then refund(units) end
        changed = true
      end
    end
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
