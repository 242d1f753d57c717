import type { Send } from './client.ts'

/** CLOCK_LINE is the one line that reads the time; tests replace it. */
export const CLOCK_LINE = "local time = redis.call('TIME') local now = time[1] * 1000000 + time[2]"

/**
 * HELLO asks for the time before the first call, since without it a call would have no deadline. A
 * Redis that cannot write whole numbers of 53 bits is refused.
 */
export const HELLO = `
if string.format('%x', 2 ^ 53) ~= '20000000000000' then
  return redis.error_reply('ERR Sluice needs a 64-bit Redis')
end
local time = redis.call('TIME')
return time[1] * 1000000 + time[2]
`

/** EXPIRY is when a row expires, in milliseconds: from then on lines without a fresh time are fresh. */
export const EXPIRY = `
local function expiry(key)
  local at = redis.pcall('PEXPIRETIME', key)
  if type(at) == 'number' and at > 0 then return at end
  -- Before Redis 7 only how long is left is known; without an expiry it is 400 days.
  local left = redis.call('PTTL', key)
  if left < 0 then left = 34560000000 end
  local time = redis.call('TIME')
  return time[1] * 1000 + math.ceil(time[2] / 1000) + left
end
`

/**
 * SWAP replaces rows if none of them has changed: 1, or 0 if one has; −1 after the deadline. ARGV: the
 * deadline, or 0; and for each row what it was, what it is, '' for none, and when that expires, with a
 * `+` where a later expiry is to stay.
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

/** swapScript is SWAP with a line that reads the time. */
export function swapScript(clockLine: string): string {
  return clockLine + EXPIRY + SWAP
}

/** Run runs a script: how many keys, the keys, and the words of ARGV. */
export type Run = (args: string[]) => Promise<unknown>

/** runnerOf runs a script by its hash, and in full where the server does not know it yet. */
export function runnerOf(send: Send, textNow: () => string): Run {
  let text = ''
  let sha = ''
  return async (args) => {
    if (sha === '') {
      const made = textNow()
      sha = await sha1(made)
      text = made
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

async function sha1(text: string): Promise<string> {
  const bytes = await crypto.subtle.digest('SHA-1', new TextEncoder().encode(text))
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
