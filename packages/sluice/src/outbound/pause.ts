import { SluiceError } from '../core/errors.ts'
import type { AsyncLimiter, Limiter } from '../limiter/verbs.ts'
import { type BareItem, parseDictionary, parseList } from './structured-fields.ts'

/** The longest pause that a server can request. */
const LONGEST_PAUSE_MS = 24 * 3_600_000

/**
 * pauseFor blocks a key for as long as a response requests, a day at most, unless it is blocked for
 * longer, and returns that time. If the store fails, the response is still returned.
 */
export async function pauseFor(
  limiter: Limiter | AsyncLimiter,
  key: string,
  response: Response,
  nowMs: number,
  cost: number,
): Promise<number> {
  const pauseMs = Math.min(pauseOf(response, nowMs, cost), LONGEST_PAUSE_MS)
  if (pauseMs <= 0) return 0
  try {
    const { source, retryAfterMs } = await limiter.peek(key, 0)
    if (source !== 'blocked' || retryAfterMs < pauseMs) await limiter.block(key, pauseMs)
  } catch (error) {
    if (!(SluiceError.is(error) && error.code === 'SLUICE_STORE_UNAVAILABLE')) throw error
  }
  return pauseMs
}

/**
 * pauseOf returns the pause that a response requests, in milliseconds; 0 if it requests none. For a
 * response from a cache (`Age`), durations start when the response was generated.
 */
export function pauseOf({ status, headers }: Response, nowMs: number, cost = 1): number {
  const ageMs = ageOf(headers)
  const isRefusal = status === 429 || status === 503
  const asked = isRefusal
    ? retryAfterMs(headers.get('retry-after')?.trim() ?? '', nowMs, ageMs)
    : undefined
  if (asked !== undefined || status === 503) return asked ?? 0
  return usedUpMs(headers, nowMs, ageMs, isRefusal ? NO_GAPS : gapsOf(headers, cost))
}

/** Seconds until a policy refills one unit, and the cost of the call. */
interface Gap {
  readonly unitS: number
  readonly costS: number
}

/** Gaps by policy name. */
type Gaps = ReadonlyMap<unknown, Gap>

const NO_GAPS: Gaps = new Map()

/**
 * Returns the gaps of policies with `sluice-burst`, whose units refill one by one: the next unit
 * comes within a gap, which may be shorter than the whole seconds of `t`.
 */
function gapsOf(headers: Headers, cost: number): Gaps {
  const gaps = new Map<unknown, Gap>()
  for (const { value, parameters } of parseList(headers.get('ratelimit-policy') ?? '') ?? []) {
    const [quota, windowS] = [countOf(parameters.get('q')), countOf(parameters.get('w'))]
    if (!quota || !windowS || !parameters.has('sluice-burst')) continue
    const unitS = windowS / quota
    gaps.set(value, { unitS, costS: unitS * Math.max(1, cost) })
  }
  return gaps
}

/** Returns the age of a response by its `Age` header, of which the first value counts. */
function ageOf(headers: Headers): number {
  return 1_000 * Number(/^\s*(\d{1,10})\s*(?:,|$)/.exec(headers.get('age') ?? '')?.[1] ?? 0)
}

/** Parses Retry-After; undefined if it is malformed. Of several values the largest counts. */
function retryAfterMs(text: string, nowMs: number, ageMs: number): number | undefined {
  if (/^\d+(\s*,\s*\d+)*$/.test(text)) {
    return Math.max(0, Math.max(...text.split(',').map(Number)) * 1_000 - ageMs)
  }
  if (!/^(mon|tue|wed|thu|fri|sat|sun)[a-z]*,? /i.test(text)) return undefined
  // HTTP dates are in GMT, even in the format that does not say so.
  const atMs = Date.parse(/ \d{4}$/.test(text) ? `${text} GMT` : text)
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs)
}

/** Returns how long until units refill if a header says that none remain; else 0. */
function usedUpMs(headers: Headers, nowMs: number, ageMs: number, gaps: Gaps): number {
  const field = headers.get('ratelimit') ?? ''
  const seconds = listedSeconds(field, gaps) ?? namedSeconds(field)
  if (seconds !== undefined) return Math.max(0, seconds * 1_000 - ageMs)
  for (const name of ['ratelimit', 'x-ratelimit']) {
    if (headers.get(`${name}-remaining`)?.trim() !== '0') continue
    const reset = Number(headers.get(`${name}-reset`))
    if (!Number.isFinite(reset) || reset <= 0) continue
    // Some servers send an instant, in seconds or milliseconds, some the seconds left.
    if (reset > 100_000_000_000) return Math.max(0, reset - nowMs)
    return Math.max(0, reset > 1_000_000_000 ? reset * 1_000 - nowMs : reset * 1_000 - ageMs)
  }
  return 0
}

/**
 * Parses a list of policies, as since draft-8: returns the longest time of those without remaining
 * units. undefined if it is not such a list, if an item violates the draft, or if it has no time.
 */
function listedSeconds(field: string, gaps: Gaps): number | undefined {
  const items = parseList(field)
  if (!items || items.length === 0) return undefined
  let seconds = 0
  let isTold = true
  for (const { kind, value, parameters } of items) {
    const left = countOf(parameters.get('r'))
    const window = parameters.get('t')
    const windowS = countOf(window)
    const isKnown = kind === 'string' && left !== undefined
    if (!isKnown || (window !== undefined && windowS === undefined)) return undefined
    if (left > 0) continue
    if (windowS === undefined) isTold = false
    else seconds = Math.max(seconds, withinS(windowS, gaps.get(value)))
  }
  return seconds > 0 || isTold ? seconds : undefined
}

/**
 * Limits a time to the gap of the policy. A longer time is debt, or a wait that the server knows
 * better.
 */
function withinS(windowS: number, gap: Gap | undefined): number {
  if (gap === undefined || windowS > Math.ceil(gap.unitS)) return windowS
  return Math.min(windowS, gap.costS)
}

/** Does the same for a dictionary, as in draft-7. */
function namedSeconds(field: string): number | undefined {
  const members = parseDictionary(field)
  const left = countOf(members?.get('remaining'))
  const seconds = countOf(members?.get('reset'))
  if (left === undefined || seconds === undefined) return undefined
  return left === 0 ? seconds : 0
}

/** Returns a number of units or seconds; undefined if the item is not one. */
function countOf(item: BareItem | undefined): number | undefined {
  return item?.kind === 'integer' && Number(item.value) >= 0 ? Number(item.value) : undefined
}
