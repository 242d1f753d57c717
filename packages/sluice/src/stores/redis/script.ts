import type { Send } from './client.ts'
import { sha1 } from './sha1.ts'

/** CLOCK_LINE is the only Lua line that reads the time. Tests replace it. */
export const CLOCK_LINE = "local time = redis.call('TIME') local now = time[1] * 1000000 + time[2]"

/**
 * HELLO requests the time before the first call, which otherwise would have no deadline. It refuses
 * a Redis that cannot format 53-bit integers.
 */
export const HELLO = `
if string.format('%x', 2 ^ 53) ~= '20000000000000' then
  return redis.error_reply('ERR Sluice needs a 64-bit Redis')
end
local time = redis.call('TIME')
return time[1] * 1000000 + time[2]
`

/** EXPIRY defines the Lua function that returns when a row expires, in milliseconds. */
export const EXPIRY = `
local function expiry(key)
  local at = redis.pcall('PEXPIRETIME', key)
  if type(at) == 'number' and at > 0 then return at end
  -- Before Redis 7 there is only PTTL. A row without an expiry gets 400 days.
  local left = redis.call('PTTL', key)
  if left < 0 then left = 34560000000 end
  local time = redis.call('TIME')
  return time[1] * 1000 + math.ceil(time[2] / 1000) + left
end
`

/**
 * SWAP replaces rows if none of them has changed. It returns 1, 0 if a row has changed, or −1 after
 * the deadline. ARGV: the deadline, or 0; then for each row its old text, its new text ('' for no
 * row) and its expiry, after a `+` if a later present expiry stays.
 */
export const SWAP = `
local deadline = tonumber(ARGV[1])
if deadline > 0 and now > deadline then return -1 end
for i = 1, #KEYS do
  if (redis.call('GET', KEYS[i]) or '') ~= ARGV[3 * i - 1] then return 0 end
end
for i, key in ipairs(KEYS) do
  local text, at = ARGV[3 * i], ARGV[3 * i + 1]
  if text == '' then
    redis.call('DEL', key)
  else
    if at:sub(1, 1) == '+' then at = math.max(tonumber(at), expiry(key)) end
    redis.call('SET', key, text, 'PXAT', at)
  end
end
return 1
`

/** swapScript returns SWAP with a line that reads the time. */
export function swapScript(clockLine: string): string {
  return clockLine + EXPIRY + SWAP
}

/** Run runs a script with the number of keys, the keys, and ARGV. */
export type Run = (args: string[]) => Promise<unknown>

/** runnerOf runs a script by its hash, and in full if the server does not have it yet. */
export function runnerOf(send: Send, textNow: () => string): Run {
  let text = ''
  let sha = ''
  return async (args) => {
    if (sha === '') {
      text = textNow()
      sha = sha1(text)
    }
    const [, firstKey] = args
    args.unshift(sha)
    try {
      return await send(firstKey, 'EVALSHA', args)
    } catch (error) {
      if (!(error instanceof Error && error.message.includes('NOSCRIPT'))) throw error
      args[0] = text
      return send(firstKey, 'EVAL', args)
    }
  }
}
