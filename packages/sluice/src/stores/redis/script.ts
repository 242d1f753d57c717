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

/** SWAP replaces a row if it has not changed. ARGV: what it was, what it is, when that expires. */
export const SWAP = `
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[2], 'PXAT', ARGV[3])
end
return 0
`
