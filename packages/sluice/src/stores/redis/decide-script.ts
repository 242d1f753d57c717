import type { Rule } from '../../core/rule.ts'
import type { Batch } from '../remote/engine.ts'
import type { RemoteRules } from '../remote/remote-rules.ts'
import type { Request } from '../store.ts'
import { CLOCK_LINE, EXPIRY } from './script.ts'
import { twinsText } from './twins.ts'

/**
 * DECIDE does any number of requests about different keys, all at one instant of Redis's own clock, and
 * answers with what it found: the row of each key, and the instant. What became of each request follows
 * from that, and the caller works it out with the algorithms' own arithmetic. Where the deadline has
 * passed nothing is done, and the instant is the whole answer.
 *
 * ARGV: the deadline, or 0; the sets of rules that are used, as JSON. Then for each key its requests: a
 * number is a check of that cost by the first set; `-` if the row is only read; else `set@` and for each
 * request a letter, an amount, `x` and a second number. KEYS: the names of the rows, whose format is in `rows/codec.ts`.
 *
 * If a row was written for other limits of these rules, or cannot be read, its requests do nothing: the
 * caller sees that from the answer, too. Lines of other rules are copied until they are fresh.
 */
export const DECIDE = `
local deadline = tonumber(ARGV[1])
if deadline > 0 and now > deadline then return { now } end
local call, match, format, ceil = redis.call, string.match, string.format, math.ceil
local MOST = 9007199254740991

local sets = cjson.decode(ARGV[2])
for i = 1, #sets do
  local set = sets[i]
  set.only, set.out = #set.rules == 1 and set.rules[1], {}
  for _, rule in ipairs(set.rules) do
    local twin = twins[rule.algorithm]
    rule.wait, rule.spend, rule.fresh = twin.wait, twin.spend, twin.fresh
    rule.refund, rule.grows = twin.refund, twin.grows
    rule.s = { 0, 0, 0 }
  end
end

-- Reads the cells of a line: up to three numbers.
local function read(rule, a, b, c)
  local s = rule.s
  s[1], s[2], s[3] = tonumber(a, 16), b and tonumber(b, 16) or 0, c and tonumber(c, 16) or 0
  return s[1] <= MOST and s[2] <= MOST and s[3] <= MOST
end

-- The same for each rule of a row that just these rules have written.
local function read_all(rules, found)
  local at = 1
  if not found[1] then return false end
  for i = 1, #rules do
    local rule = rules[i]
    local b, c = rule.cells > 1 and found[at + 1], rule.cells > 2 and found[at + 2]
    if not read(rule, found[at], b, c) then return false end
    at = at + rule.cells
  end
  return true
end

local function passes(rules, cost)
  for i = 1, #rules do
    local rule = rules[i]
    if cost > rule.capacity or rule.wait(rule.s, rule, cost, now) > 0 then return false end
  end
  return true
end

-- When rules are fresh, in milliseconds; 0 if they are.
local function fresh_at(rules)
  local latest = 0
  for i = 1, #rules do
    local fresh = rules[i].fresh(rules[i].s, rules[i])
    if fresh > latest then latest = fresh end
  end
  return latest > now and ceil(latest / 1000) or 0
end

-- The text of a row of just these rules.
local function write_all(set)
  local rules, out, at = set.rules, set.out, 0
  for i = 1, #rules do
    for j = 1, rules[i].cells do out[at + j] = rules[i].s[j] end
    at = at + rules[i].cells
  end
  return format(set.format, unpack(out, 1, at))
end

-- Checks a cost on a row that just these rules have written; false if it is another one.
local function plain(key, value, set, cost)
  local rules, only = set.rules, set.only
  if not value then
    for i = 1, #rules do
      local s = rules[i].s
      s[1], s[2], s[3] = 0, 0, 0
    end
  elseif only then
    local a, b, c = match(value, set.pattern)
    if not a or not read(only, a, b, c) then return false end
  elseif not read_all(rules, { match(value, set.pattern) }) then
    return false
  end
  if cost == 0 or not passes(rules, cost) then return true end
  local was = value and fresh_at(rules)
  for i = 1, #rules do rules[i].spend(rules[i].s, rules[i], cost, now) end
  local fresh, text = fresh_at(rules), nil
  if only then
    local s = only.s
    text = format(set.format, s[1], s[2], s[3])
  else
    text = write_all(set)
  end
  if fresh == 0 then
    if value then call('DEL', key) end
  elseif fresh == was then
    -- The row expires when it is fresh. To leave that as it is takes Redis less time.
    call('SET', key, text, 'KEEPTTL')
  else
    call('SET', key, text, 'PXAT', format('%d', fresh))
  end
  return true
end

-- Any requests about a key, on any row.
local function other(key, value, set, word)
  local rules = set.rules
  local block, others = 0, {}

  local function whole(text)
    local number = tonumber(text, 16)
    return number and number <= MOST and number
  end

  -- Reads the cells of a line; false if they are no numbers.
  local function read(rule, text)
    local s = {}
    for cell in string.gmatch(text, '[^ ]+') do
      s[#s + 1] = whole(cell)
      if not s[#s] then return false end
    end
    if rule.grows then
      if #s % 2 == 1 then s = {} end
    else
      for i = #s + 1, math.max(rule.cells, 3) do s[i] = 0 end
    end
    rule.s = s
    return true
  end

  -- Whose cells a line has, as ownerOf tells it.
  local function owner(label)
    local text, name = match(label, '^([^\\t]*)\\t?(.*)$')
    local _, spaces = string.gsub(text, ' ', ' ')
    return (spaces % 2 == 1 and match(text, '[^ ]*$') or 'T') .. '\\t' .. name
  end

  local function forget()
    block, others = 0, {}
    for i = 1, #rules do read(rules[i], '') end
  end

  -- A line of a rule that is known here; nil: of none. False: not to be touched.
  local function read_own(label, cells)
    local whose = owner(label)
    for i = 1, #rules do
      if label == rules[i].label then return read(rules[i], cells) end
      if whose == owner(rules[i].label) then return false end
    end
  end

  local function open()
    forget()
    for line in string.gmatch(value and value .. '\\n' or '', '([^\\n]*)\\n') do
      local until_us = match(line, '^!([%da-f]+)$')
      local cells, fresh, label = match(line, '^([%da-f][%da-f ]*)@?([%da-f]*):(.+)$')
      if until_us then
        block = whole(until_us)
        if not block then return false end
      elseif not cells or match(cells, ' $') or match(cells, '  ') then
        return false
      else
        local own = read_own(label, cells)
        if own == false then return false end
        if own == nil then others[#others + 1] = { cells, fresh, label } end
      end
    end
    return true
  end

  local function text_of(rule)
    local parts = {}
    for i = 1, rule.grows and #rule.s or rule.cells do parts[i] = format('%x', rule.s[i]) end
    return parts[1] and table.concat(parts, ' ') or '0'
  end

  local function save()
    local lines, latest = {}, 0
    local function add(cells, fresh, label)
      lines[#lines + 1] = { cells, fresh, label }
      latest = math.max(latest, fresh)
    end
    for i = 1, #rules do add(text_of(rules[i]), fresh_at({ rules[i] }), rules[i].label) end
    local own = #lines
    for _, line in ipairs(others) do
      local fresh = line[2] ~= '' and whole(line[2]) or expiry(key)
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
      call('SET', key, table.concat(parts, '\\n'), 'PXAT', latest)
    elseif value then
      call('DEL', key)
    end
  end

  local function spend(units)
    if units == 0 then return end
    for i = 1, #rules do rules[i].spend(rules[i].s, rules[i], units, now) end
  end

  -- Does one request, and tells whether the row has changed.
  local function act(verb, units, more)
    if verb == 'c' then
      local changed = false
      for _ = 1, more do
        if block > now or units == 0 or not passes(rules, units) then break end
        spend(units)
        changed = true
      end
      return changed
    elseif verb == 'l' then
      if block > now or not passes(rules, units) then return false end
      while more > 0 and not passes(rules, units + 2 * more) do more = math.floor(more / 2) end
      spend(units + more)
    elseif verb == 'd' then
      spend(units)
    elseif verb == 'r' then
      for i = 1, #rules do
        local give_back = rules[i].refund
        if give_back and (more == 0 or now < more) then give_back(rules[i].s, rules[i], units, now, RECENT) end
      end
    elseif verb == 'x' then
      forget()
    elseif verb == 'b' then
      block = now + units
    elseif verb == 'u' then
      block = 0
    else
      return false
    end
    return true
  end

  -- Without rules nothing is lost: a block, its end or a reset replaces what cannot be read.
  if not open() then
    if #rules > 0 then return end
    forget()
  end
  local changed = false
  for verb, amount, second in string.gmatch(word, '(%a)(%d+)x(%d+)') do
    if act(verb, tonumber(amount), tonumber(second)) then changed = true end
  end
  if changed then save() end
end

local values = call('MGET', unpack(KEYS))
for k = 1, #KEYS do
  local word = ARGV[2 + k]
  local cost = tonumber(word)
  local set = sets[1]
  if word ~= '-' and not (cost and set.pattern and plain(KEYS[k], values[k], set, cost)) then
    local which, requests = match(word, '^(%d+)@(.*)$')
    set = which and sets[tonumber(which)] or set
    other(KEYS[k], values[k], set, requests or format('c%dx1', cost))
  end
end
values[#KEYS + 1] = now
return values
`

/** decideScript is the script with the twins of these algorithms. */
export function decideScript(twins: ReadonlyMap<string, string>, clockLine = CLOCK_LINE): string {
  return `${clockLine}\n${EXPIRY}${twinsText(twins)}${DECIDE}`
}

/** decideArgs are what the script takes: how many keys, the keys, and the words of ARGV. */
export function decideArgs(
  { firsts }: Batch,
  untilUs: number,
  nameOf: (key: string) => string,
): string[] {
  const sets: RemoteRules[] = []
  const args: string[] = [String(firsts.length)]
  const words = [String(untilUs), '']
  for (const first of firsts) {
    const set = first.set as RemoteRules
    args.push(nameOf(first.key))
    words.push(isTwinned(set) ? wordOf(sets.indexOf(set) + 1 || sets.push(set), first) : '-')
  }
  words[1] = `[${sets.map(jsonOf).join()}]`
  for (const word of words) args.push(word)
  return args
}

/** isTwinned tells whether the script can decide by these rules; by others it only reads. */
export function isTwinned({ lines }: RemoteRules): boolean {
  return lines.every(({ rule }) => rule.algorithm.lua !== '')
}

/** letters stand for verbs in the script; a check that leases is an `l`. */
export const letters = {
  ...{ check: 'c', peek: 'p', charge: 'd', refund: 'r' },
  ...{ block: 'b', unblock: 'u', reset: 'x' },
}

function wordOf(set: number, first: Request): string {
  const isPlain = first.verb === 'check' && first.lease === 0
  if (set === 1 && isPlain && !first.next) return String(first.cost)
  let word = `${set}@`
  for (let each: Request | undefined = first; each; each = each.next) {
    const { verb, cost, lease, untilUs } = each
    if (verb !== 'check' || lease > 0) {
      word += `${lease > 0 ? 'l' : letters[verb]}${cost}x${lease || untilUs}`
      continue
    }
    let times = 1
    while (isAlike(each, each.next)) {
      times += 1
      each = each.next
    }
    word += `c${cost}x${times}`
  }
  return word
}

/** Whether the next request is the same check. */
function isAlike(
  { cost }: Request,
  next: Request | undefined,
): next is Request & { readonly verb: 'check' } {
  return next?.verb === 'check' && next.cost === cost && next.lease === 0
}

const known = new WeakMap<RemoteRules, string>()

/** A set of rules as the script takes it. */
function jsonOf(set: RemoteRules): string {
  let json = known.get(set)
  if (json === undefined) {
    const rules = set.lines.map(({ rule, label }) => told(rule, label))
    json = JSON.stringify({ rules, ...formsOf(set) })
    known.set(set, json)
  }
  return json
}

/** A rule as Lua gets it: `per` is microseconds there, so the word is `period`. */
function told(rule: Rule, label: string): object {
  const { per: period, ...params } = rule.params
  return {
    ...(period === undefined ? params : { period, ...params }),
    algorithm: rule.algorithm.name,
    label,
    cells: rule.algorithm.grows ? 0 : rule.algorithm.cells(rule),
    limit: rule.limit,
    per: rule.perUs,
    capacity: rule.capacity,
    gap: rule.gapUs,
    rest: rule.gapRest,
    parts: rule.gapParts,
    full: rule.fullUs,
    full_rest: rule.fullRest,
  }
}

/** The most cells of a rule, and rules, of a row that the script reads by a pattern. */
const MOST_CELLS = 3
const MOST_RULES = 10

/** What `openRow` calls a plain row, as a pattern to read it by and a format to write it by. */
function formsOf({ lines, row }: RemoteRules): object {
  const fits = lines.every(({ rule }) => rule.algorithm.cells(rule) <= MOST_CELLS)
  if (!row.pattern || !fits || lines.length > MOST_RULES) return {}
  const each = lines.map(({ rule, label }) => {
    const count = rule.algorithm.cells(rule)
    const cells = (cell: string) => Array(count).fill(cell).join(' ')
    return {
      pattern: `${cells('([%da-f]+)')}:${label.replace(/[^\w\t ]/g, '%$&')}`,
      format: `${cells('%x')}:${label.replaceAll('%', '%%')}`,
    }
  })
  return {
    pattern: `^${each.map(({ pattern }) => pattern).join('\n')}$`,
    format: each.map(({ format }) => format).join('\n'),
  }
}
