// Longer than the other files: this is one script, which Redis runs as a whole.

/**
 * DECIDE executes any number of requests, all at one instant of Redis's own clock. It replies with
 * the rows as they were before, and the instant. From these the caller recomputes the result of
 * each request with the algorithms' own code. If the deadline has passed, or the instant is outside
 * the edges of a rule, the script does nothing and replies with the instant alone.
 *
 * KEYS: the names of the rows, whose format is in `rows/codec.ts`. ARGV: the deadline, or 0; the
 * rule sets, as JSON; and the requests, in one of two forms.
 *
 * Keys without fields: one word per row. A number is a check of that cost by the first set;
 * `set:cost` is a check by another set; `-` only reads the row; `set@` precedes a list of requests.
 * A request is a letter, its units, `x` and further numbers: `c5x1`, or `c1,1500x1` with units per
 * rule. Refusals of a capital letter do not count towards a penalty.
 *
 * Keys with fields: a plan, which is a JSON list. It begins with the set of each row, 0 if the row
 * is only read. The requests follow. A check that counts no refusals is a series of numbers: how
 * many rows it has, their indexes, how many units follow, and the units (one for all rules, or one
 * per rule). Any other request is a text: the indexes of its rows, `@`, and the request as above.
 *
 * If other limits wrote a row, or it cannot be decoded, the script skips its requests; the caller
 * sees that from the reply. Lines of other rules are copied until they are fresh.
 */
export const DECIDE = `
local deadline = tonumber(ARGV[1])
if deadline > 0 and now > deadline then return { now } end
local call, match, format, ceil = redis.call, string.match, string.format, math.ceil
local MOST, NONE = 9007199254740991, {}

local sets = cjson.decode(ARGV[2])
for i = 1, #sets do
  local set = sets[i]
  set.only, set.states = #set.rules == 1, {}
  for i, rule in ipairs(set.rules) do
    local edges = rule.edges
    if edges and (now < edges[1] or now >= edges[#edges]) then return { now } end
    local twin = twins[rule.algorithm]
    rule.twin, rule.wait, rule.spend, rule.fresh = twin, twin.wait, twin.spend, twin.fresh
    rule.punish, set.states[i] = twin.punish, { 0, 0, 0 }
    set.counts = set.counts or twin.punish ~= nil
  end
end

local function admits(rule, s, units)
  if rule.punish then return true end
  return units <= rule.capacity and rule.wait(s, rule, units, now) <= 0
end

-- Returns when a state is fresh, in milliseconds; 0 if it is already.
local function fresh_at(rule, s)
  local fresh = rule.fresh(s, rule)
  return fresh > now and ceil(fresh / 1000) or 0
end

-- Decodes up to three cells of a line into a state.
local function read(s, a, b, c)
  s[1], s[2], s[3] = tonumber(a, 16), b and tonumber(b, 16) or 0, c and tonumber(c, 16) or 0
  return s[1] <= MOST and s[2] <= MOST and s[3] <= MOST
end

-- Decodes a row that only these rules wrote, the usual case, into their states; else false.
local function read_plain(value, set, states)
  if not set.pattern then return false end
  if set.only then
    local a, b, c = match(value, set.pattern)
    return a and read(states[1], a, b, c)
  end
  local found, rules, at = { match(value, set.pattern) }, set.rules, 1
  if not found[1] then return false end
  for i = 1, #rules do
    local cells = rules[i].cells
    if not read(states[i], found[at], cells > 1 and found[at + 1], cells > 2 and found[at + 2]) then
      return false
    end
    at = at + cells
  end
  return true
end

-- Returns when all these states are fresh, in milliseconds; 0 if they are already.
local function latest_of(rules, states)
  local latest = 0
  for i = 1, #rules do
    local fresh = rules[i].fresh(states[i], rules[i])
    if fresh > latest then latest = fresh end
  end
  return latest > now and ceil(latest / 1000) or 0
end

-- Writes a row of only these rules. \`was\` is its fresh time before, or nil if unknown.
local function write_plain(key, value, set, states, was)
  local rules, text = set.rules, nil
  local fresh = latest_of(rules, states)
  if fresh == 0 then
    if value then call('DEL', key) end
    return
  end
  if set.only then
    local s = states[1]
    text = format(set.format, s[1], s[2], s[3])
  else
    local out, at = {}, 0
    for i = 1, #rules do
      for j = 1, rules[i].cells do out[at + j] = states[i][j] end
      at = at + rules[i].cells
    end
    text = format(set.format, unpack(out, 1, at))
  end
  if fresh == was then
    -- The expiry is the fresh time. Keeping it is cheaper than setting it again.
    call('SET', key, text, 'KEEPTTL')
  else
    call('SET', key, text, 'PXAT', format('%d', fresh))
  end
end

-- Checks a cost on a row that only these rules wrote; false for any other row.
local function plain(key, value, set, cost)
  local rules, states = set.rules, set.states
  if not value then
    for i = 1, #rules do
      local s = states[i]
      s[1], s[2], s[3] = 0, 0, 0
    end
  elseif not read_plain(value, set, states) then
    return false
  end
  if cost == 0 then return true end
  for i = 1, #rules do
    if not admits(rules[i], states[i], cost) then return true end
  end
  local was = value and latest_of(rules, states)
  for i = 1, #rules do rules[i].spend(states[i], rules[i], cost, now) end
  write_plain(key, value, set, states, was)
  return true
end

local function whole(text)
  local number = tonumber(text, 16)
  return number and number <= MOST and number
end

-- Decodes the cells of a line; nil if they are not numbers.
local function state_of(rule, text)
  local s = {}
  for cell in string.gmatch(text, '[^ ]+') do
    s[#s + 1] = whole(cell)
    if not s[#s] then return nil end
  end
  if rule.twin.grows then
    if #s % 2 == 1 then s = {} end
  else
    for i = #s + 1, math.max(rule.cells, 3) do s[i] = 0 end
  end
  return s
end

-- Returns the owner of a line, as ownerOf in rows/codec.ts does.
local function owner(label)
  local text, name = match(label, '^([^\\t]*)\\t?(.*)$')
  local _, spaces = string.gsub(text, ' ', ' ')
  return (spaces % 2 == 1 and match(text, '[^ ]*$') or 'T') .. '\\t' .. name
end

-- Clears a row.
local function forget(row)
  row.block, row.others = 0, {}
  for i, rule in ipairs(row.set.rules) do
    local s = {}
    if not rule.twin.grows then
      for j = 1, math.max(rule.cells, 3) do s[j] = 0 end
    end
    row.s[i] = s
  end
end

-- Decodes a line of a rule of the set into a row. nil: another rule; false: do not touch the row.
local function read_own(row, label, cells)
  local whose = owner(label)
  for i, rule in ipairs(row.set.rules) do
    if label == rule.label then
      row.s[i] = state_of(rule, cells)
      return row.s[i] ~= nil
    end
    if whose == owner(rule.label) then return false end
  end
end

-- Decodes any row; false if the script must not touch it.
local function read_row(row)
  for line in string.gmatch(row.value and row.value .. '\\n' or '', '([^\\n]*)\\n') do
    local until_us = match(line, '^!([%da-f]+)$')
    local cells, fresh, label = match(line, '^([%da-f][%da-f ]*)@?([%da-f]*):(.+)$')
    if until_us then
      row.block = whole(until_us)
      if not row.block then return false end
    elseif not cells or match(cells, ' $') or match(cells, '  ') then
      return false
    else
      local own = read_own(row, label, cells)
      if own == false then return false end
      if own == nil then row.others[#row.others + 1] = { cells, fresh, label } end
    end
  end
  return true
end

local function open(key, value, set)
  local row = {
    key = key, value = value, set = set, s = {}, block = 0, others = NONE, changed = false,
  }
  if set.pattern then
    for i = 1, #set.rules do row.s[i] = { 0, 0, 0 } end
    if not value or read_plain(value, set, row.s) then return row end
  end
  forget(row)
  if not value or read_row(row) then return row end
  -- Without rules: block, unblock and reset may replace a row that cannot be decoded.
  if #set.rules > 0 then return nil end
  forget(row)
  return row
end

local function text_of(rule, s)
  local parts = {}
  for i = 1, rule.twin.grows and #s or rule.cells do parts[i] = format('%x', s[i]) end
  return parts[1] and table.concat(parts, ' ') or '0'
end

local function save(row)
  if row.set.format and row.block <= now and not row.others[1] then
    write_plain(row.key, row.value, row.set, row.s)
    return
  end
  local lines, latest, block = {}, 0, row.block
  local function add(cells, fresh, label)
    lines[#lines + 1] = { cells, fresh, label }
    latest = math.max(latest, fresh)
  end
  for i, rule in ipairs(row.set.rules) do
    add(text_of(rule, row.s[i]), fresh_at(rule, row.s[i]), rule.label)
  end
  local own = #lines
  for _, line in ipairs(row.others) do
    local fresh = line[2] ~= '' and whole(line[2]) or expiry(row.key)
    if fresh * 1000 > now then add(line[1], fresh, line[3]) end
  end
  local parts, is_plain = {}, #lines == own and block <= now
  if block > now then
    latest = math.max(latest, ceil(block / 1000))
    parts[1] = '!' .. format('%x', block)
  end
  for _, line in ipairs(lines) do
    local fresh = is_plain and '' or '@' .. format('%x', line[2])
    parts[#parts + 1] = line[1] .. fresh .. ':' .. line[3]
  end
  if latest > 0 then
    call('SET', row.key, table.concat(parts, '\\n'), 'PXAT', latest)
  elseif row.value then
    call('DEL', row.key)
  end
end

-- Executes a check that counts no refusals. The plan has the indexes of \`most\` rows from \`at\` on, and
-- units for all rules or per rule.
local function check(opened, plan, at, most)
  local units, own = at + most + 1, plan[at + most] > 1
  local k = units
  for i = at, at + most - 1 do
    local row = opened[plan[i]]
    if row.block > now then return end
    local rules, s = row.set.rules, row.s
    for j = 1, #rules do
      if not admits(rules[j], s[j], plan[k]) then return end
      if own then k = k + 1 end
    end
  end
  k = units
  for i = at, at + most - 1 do
    local row = opened[plan[i]]
    local rules, s = row.set.rules, row.s
    for j = 1, #rules do
      if plan[k] > 0 then
        rules[j].spend(s[j], rules[j], plan[k], now)
        row.changed = true
      end
      if own then k = k + 1 end
    end
  end
end

-- Executes one request on some rows. units has a number per rule of these rows, or one for all.
local function act(rows, verb, units, more)
  local states, is_blocked = {}, false
  local is_counted = verb == string.lower(verb)
  verb = string.lower(verb)
  for which, row in ipairs(rows) do
    if row.block > now then is_blocked = true end
    for i, rule in ipairs(row.set.rules) do
      local own = units[#states + 1] or units[1]
      states[#states + 1] = { rule = rule, row = which, s = row.s[i], units = own }
    end
  end

  local function pass(ahead)
    if is_blocked then return false end
    for _, state in ipairs(states) do
      if not admits(state.rule, state.s, state.units + ahead) then return false end
    end
    return true
  end

  -- Counts the refusal on each row that refuses; false if no row has a penalty.
  local function punish()
    local counts = false
    for i, row in ipairs(rows) do
      local refused = false
      for _, state in ipairs(states) do
        if state.row == i and not admits(state.rule, state.s, state.units) then refused = true end
      end
      for _, state in ipairs(states) do
        if refused and row.block <= now and state.row == i and state.rule.twin.punish then
          local us = state.rule.twin.punish(state.s, state.rule, now)
          if us > 0 then row.block, is_blocked = now + us, true end
          row.changed, counts = true, true
        end
      end
    end
    return counts
  end

  local function spend(ahead)
    local spent = false
    for _, state in ipairs(states) do
      if state.units + ahead > 0 then
        state.rule.spend(state.s, state.rule, state.units + ahead, now)
        spent = true
      end
    end
    return spent
  end

  -- Ends the hold of the k-th state; false if it has ended already.
  local function release(k)
    local state = states[k]
    local held, generation, slot = more[3 * k - 1], more[3 * k], more[3 * k + 1]
    if held == 0 or generation == 0 or state.s[1] ~= generation then return false end
    return state.rule.twin.release(state.s, state.rule, held, slot, now)
  end

  local changed = verb ~= 'p'
  if verb == 'c' then
    changed = false
    for _ = 1, more[1] do
      if pass(0) then
        if not spend(0) then break end
        changed = true
      elseif not is_counted or not punish() then
        break
      end
    end
  elseif verb == 'a' then
    local passes = pass(0)
    changed = passes and spend(0)
    if is_counted and not passes then punish() end
    for _, state in ipairs(states) do
      if changed and state.rule.twin.holds and state.s[1] == 0 then state.s[1] = more[1] end
    end
  elseif verb == 'l' then
    local ahead = more[1]
    changed = pass(0)
    while changed and ahead > 0 and not pass(2 * ahead) do
      ahead = math.floor(ahead / 2)
    end
    if changed then spend(ahead) end
  elseif verb == 'd' then
    spend(0)
  elseif verb == 'r' or verb == 'f' then
    for k, state in ipairs(states) do
      local twin, s, rule, change = state.rule.twin, state.s, state.rule, state.units
      if verb == 'f' and twin.holds then
        release(k)
      elseif verb == 'f' and change > 0 then
        rule.spend(s, rule, change, now)
      elseif twin.refund and verb == 'f' and change < 0 then
        twin.refund(s, rule, -change, now, more[1])
      elseif twin.refund and verb == 'r' and (more[1] == 0 or now < more[1]) then
        twin.refund(s, rule, change, now, RECENT)
      end
    end
  elseif verb == 'e' then
    for k, state in ipairs(states) do
      if state.rule.twin.holds and more[3 * k - 1] > 0 then
        if not release(k) then break end
        state.rule.spend(state.s, state.rule, more[3 * k - 1], now)
      end
    end
  end
  for _, row in ipairs(rows) do
    if verb == 'x' then forget(row) end
    if verb == 'b' then row.block = now + units[1] end
    if verb == 'u' then row.block = 0 end
    -- Without rules, other verbs keep the row of a later version.
    if changed and (row.set.rules[1] or match(verb, '[bux]')) then row.changed = true end
  end
end

local function numbers(text)
  local list = {}
  for number in string.gmatch(text, '[^,]+') do list[#list + 1] = tonumber(number) end
  return list
end

-- Executes requests on some rows, in order.
local function act_all(rows, requests)
  for verb, units, more in string.gmatch(requests, '(%a)([%d,-]+)x([%d,]+)') do
    act(rows, verb, numbers(units), numbers(more))
  end
end

-- A request on a row that was not opened is left to the library. So are later requests that share one of
-- its rows, so that they keep their order.
local is_whole, left = true, {}
local function is_left(opened, rows, from, to)
  if is_whole then return false end
  local any = false
  for i = from, to do any = any or left[rows[i]] or not opened[rows[i]] end
  for i = from, to do left[rows[i]] = left[rows[i]] or any end
  return any
end

-- Executes a request of the plan that is a text.
local function act_text(opened, word)
  local which, requests = match(word, '^([%d,]+)@(.*)$')
  local rows = numbers(which)
  if is_left(opened, rows, 1, #rows) then return end
  for i, k in ipairs(rows) do rows[i] = opened[k] end
  act_all(rows, requests)
end

local values, opened = call('MGET', unpack(KEYS)), {}
if string.sub(ARGV[3], 1, 1) == '[' then
  local plan = cjson.decode(ARGV[3])
  for k = 1, #KEYS do
    local set = sets[plan[k]]
    if set then opened[k] = open(KEYS[k], values[k], set) end
    is_whole = is_whole and opened[k]
  end
  local at = #KEYS + 1
  while plan[at] do
    if type(plan[at]) == 'string' then
      act_text(opened, plan[at])
      at = at + 1
    else
      if not is_left(opened, plan, at + 1, at + plan[at]) then check(opened, plan, at + 1, plan[at]) end
      at = at + 1 + plan[at]
      at = at + 1 + plan[at]
    end
  end
else
  for k = 1, #KEYS do
    local word, set = ARGV[2 + k], sets[1]
    local cost, requests = tonumber(word)
    if not cost and word ~= '-' then
      local which, rest = match(word, '^(%d+)[@:](.*)$')
      set, cost, requests = sets[tonumber(which)], tonumber(rest), rest
    end
    if word ~= '-' and not (cost and set.pattern and plain(KEYS[k], values[k], set, cost)) then
      opened[k] = open(KEYS[k], values[k], set)
      if opened[k] then act_all({ opened[k] }, cost and format('c%dx1', cost) or requests) end
    end
  end
end
for k = 1, #KEYS do
  if opened[k] and opened[k].changed then save(opened[k]) end
end
values[#KEYS + 1] = now
return values
`
