import { CLOCK_LINE } from './script.ts'
import { twinsText } from './twins.ts'

/**
 * CHECK is for what most trips are: one check by one rule of at most three cells, on a row that no
 * other rule has written and that has no block; other rows are left to DECIDE. ARGV: the deadline, or 0; a colon and the
 * label of the rule; the cost; the rule's figures and parameters. The answer is as that of DECIDE.
 */
export const CHECK = `
local deadline = tonumber(ARGV[1])
if deadline > 0 and now > deadline then return { now } end
local value, label, cost = redis.call('MGET', KEYS[1])[1], ARGV[2], tonumber(ARGV[3])
local s = { 0, 0, 0 }
if value then
  if string.sub(value, -#label) ~= label then return { value, now } end
  local a, b, c = string.match(string.sub(value, 1, -#label - 1), '^(%x+) ?(%x*) ?(%x*)$')
  if not a then return { value, now } end
  s = { tonumber(a, 16), b == '' and 0 or tonumber(b, 16), c == '' and 0 or tonumber(c, 16) }
  if math.max(s[1], s[2], s[3]) > 9007199254740991 then return { value, now } end
end
local r = {
  limit = tonumber(ARGV[4]), per = tonumber(ARGV[5]), capacity = tonumber(ARGV[6]),
  gap = tonumber(ARGV[7]), rest = tonumber(ARGV[8]), parts = tonumber(ARGV[9]),
  full = tonumber(ARGV[10]), full_rest = tonumber(ARGV[11]),
}
for i = 12, #ARGV, 2 do
  local given = string.sub(ARGV[i + 1], 2)
  r[ARGV[i]] = string.byte(ARGV[i + 1]) == 110 and tonumber(given) or given
end
if t.wait(s, r, cost, now) <= 0 then
  t.spend(s, r, cost, now)
  local count, text = #s, string.format('%x', s[1])
  while count > 1 and s[count] == 0 do count = count - 1 end
  for i = 2, count do text = text .. string.format(' %x', s[i]) end
  local fresh = t.fresh(s, r)
  if fresh > now then
    redis.call('SET', KEYS[1], text .. label, 'PXAT', string.format('%d', math.ceil(fresh / 1000)))
  elseif value then
    redis.call('DEL', KEYS[1])
  end
end
return { value, now }
`

/** checkScript is the script for one check by a rule whose algorithm has this twin. */
export function checkScript(twin: string, clockLine = CLOCK_LINE): string {
  return `${clockLine}\n${twinsText(new Map([['t', twin]]))}local t = twins.t\n${CHECK}`
}
