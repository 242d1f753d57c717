import { SluiceError, shown } from './errors.ts'
import { checkFunction, checkOptions } from './options.ts'
import type { AsyncLimiter, Limiter, WaitOptions } from './verbs.ts'

type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>

/** ThrottleOptions are those of `throttled`; the wait of a call has those of `limiter.wait`. */
export interface ThrottleOptions extends Pick<WaitOptions, 'maxWaitMs' | 'maxWaiting'> {
  readonly limiter: Limiter | AsyncLimiter
  /** Whose limit a call counts against. Default: the origin it goes to. */
  readonly key?: string | ((request: Request) => string)
  /** What a call costs. Default 1. */
  readonly cost?: number | ((request: Request) => number)
}

const NAMES = ['limiter', 'key', 'cost', 'maxWaitMs', 'maxWaiting']

/** The longest pause that a server can ask for. */
const LONGEST_PAUSE_MS = 24 * 3_600_000

/**
 * throttled is a `fetch` that keeps to limits: each call waits its turn, first come first served
 * for its key. When a server answers that it has had enough (429 or 503 with Retry-After, or
 * RateLimit fields with nothing left), that key pauses for as long as it says, and the response is
 * handed to the caller: nothing is sent again. The signal of a call ends its wait; a wait that would
 * be too long rejects with `SLUICE_WAIT_TOO_LONG`.
 */
export function throttled(fetch: Fetch, options: ThrottleOptions): Fetch {
  checkOptions('throttled', options, NAMES)
  if (typeof fetch !== 'function') {
    throw new SluiceError(
      'SLUICE_OPTION',
      `throttled: the first argument must be a fetch, got ${shown(fetch)}.`,
    )
  }
  const { limiter, key, cost = 1, maxWaitMs, maxWaiting } = options
  if (typeof limiter?.wait !== 'function') {
    throw new SluiceError(
      'SLUICE_OPTION',
      `throttled: limiter must come from createLimiter(), got ${shown(limiter)}.`,
    )
  }
  if (typeof key !== 'string') checkFunction('throttled: key', key)

  return async (input, init) => {
    const request = new Request(input, init)
    const own = typeof key === 'function' ? key(request) : (key ?? new URL(request.url).origin)
    const units = typeof cost === 'function' ? cost(request) : cost
    const { signal } = request
    const { allowed, retryAfterMs } = await limiter.wait(own, units, {
      signal,
      maxWaitMs,
      maxWaiting,
    })
    if (!allowed) throw tooLong(own, retryAfterMs)
    const response = await fetch(request)
    await pause(limiter, own, Math.min(pauseOf(response, Date.now()), LONGEST_PAUSE_MS))
    return response
  }
}

/** Blocks a key, unless it is blocked for longer. A store that fails must not cost the response. */
async function pause(limiter: Limiter | AsyncLimiter, key: string, pauseMs: number) {
  if (pauseMs <= 0) return
  try {
    const { source, retryAfterMs } = await limiter.peek(key, 0)
    if (source !== 'blocked' || retryAfterMs < pauseMs) await limiter.block(key, pauseMs)
  } catch (error) {
    if (!(error instanceof SluiceError && error.code === 'SLUICE_STORE_UNAVAILABLE')) throw error
  }
}

function tooLong(key: string, retryAfterMs: number): SluiceError {
  return new SluiceError(
    'SLUICE_WAIT_TOO_LONG',
    `a call for ${shown(key)} would have to wait ${Math.ceil(retryAfterMs)} ms, or too many are in ` +
      'line. Try again later, or raise maxWaitMs or maxWaiting.',
  )
}

/** pauseOf is how long a server wants to be left alone, in milliseconds; 0 if it does not say so. */
export function pauseOf({ status, headers }: Response, nowMs: number): number {
  const isRefusal = status === 429 || status === 503
  const asked = isRefusal
    ? retryAfterMs(headers.get('retry-after')?.trim() ?? '', nowMs)
    : undefined
  return asked ?? (status === 503 ? 0 : usedUpMs(headers, nowMs))
}

/** What Retry-After says; undefined if it cannot be read. Of several values the largest counts. */
function retryAfterMs(text: string, nowMs: number): number | undefined {
  if (/^\d+(\s*,\s*\d+)*$/.test(text)) return Math.max(...text.split(',').map(Number)) * 1_000
  if (!/^(mon|tue|wed|thu|fri|sat|sun)[a-z]*,? /i.test(text)) return undefined
  const atMs = Date.parse(text)
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs)
}

/** Longer fields are not read. */
const LONGEST_FIELD = 2_048

/** Where a field says that nothing is left: how long until that changes. */
function usedUpMs(headers: Headers, nowMs: number): number {
  // What is between quotation marks is a name, whatever it looks like.
  const given = headers.get('ratelimit') ?? ''
  const field = given.slice(0, LONGEST_FIELD).replace(/"(?:[^"\\]|\\.)*"/g, '""')
  let seconds = 0
  for (const item of field.split(/,(?=\s*(?:"|$))/)) {
    const left = /;\s*r=0(?!\d)/.test(item) && /;\s*t=(\d{1,9})/.exec(item)?.[1]
    if (left) seconds = Math.max(seconds, Number(left))
  }
  if (/(^|,\s*)remaining=0(?!\d)/.test(field)) {
    seconds = Number(/(?:^|,\s*)reset=(\d{1,9})/.exec(field)?.[1] ?? 0)
  }
  if (seconds > 0) return seconds * 1_000
  if (headers.get('x-ratelimit-remaining')?.trim() !== '0') return 0
  const reset = Number(headers.get('x-ratelimit-reset'))
  if (!Number.isFinite(reset) || reset <= 0) return 0
  // Some give the moment, in seconds or milliseconds, some the seconds that are left.
  if (reset > 100_000_000_000) return Math.max(0, reset - nowMs)
  return reset > 1_000_000_000 ? Math.max(0, reset * 1_000 - nowMs) : reset * 1_000
}
