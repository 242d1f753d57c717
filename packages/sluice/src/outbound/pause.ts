import { SluiceError } from '../core/errors.ts'
import type { AsyncLimiter, Limiter } from '../limiter/verbs.ts'
import { type BareItem, parseDictionary, parseList } from './structured-fields.ts'

/** The longest pause that a server can ask for. */
const LONGEST_PAUSE_MS = 24 * 3_600_000

/**
 * pauseFor blocks a key for as long as a response asks for, a day at most, unless it is blocked for
 * longer, and returns that time. A store that fails does not cost the response.
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
 * pauseOf is how long a server wants to be left alone, in milliseconds; 0 if it does not say so. Of a
 * response from a cache (`Age`), durations began when it was made.
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

/** Seconds until a policy gives back one unit, and as much as the call costs. */
interface Gap {
  readonly unitS: number
  readonly costS: number
}

/** By the name of the policy. */
type Gaps = ReadonlyMap<unknown, Gap>

const NO_GAPS: Gaps = new Map()

/**
 * Of policies with a `sluice-burst`, whose units come back one by one: after the last one that was
 * left the next comes within such a gap, while `t` is whole seconds.
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

/** How long ago a response was made, as caches tell: of several values the first counts. */
function ageOf(headers: Headers): number {
  return 1_000 * Number(/^\s*(\d{1,10})\s*(?:,|$)/.exec(headers.get('age') ?? '')?.[1] ?? 0)
}

/** What Retry-After says; undefined if it cannot be read. Of several values the largest counts. */
function retryAfterMs(text: string, nowMs: number, ageMs: number): number | undefined {
  if (/^\d+(\s*,\s*\d+)*$/.test(text)) {
    return Math.max(0, Math.max(...text.split(',').map(Number)) * 1_000 - ageMs)
  }
  if (!/^(mon|tue|wed|thu|fri|sat|sun)[a-z]*,? /i.test(text)) return undefined
  // Dates of HTTP are in GMT; one of their forms does not say so.
  const atMs = Date.parse(/ \d{4}$/.test(text) ? `${text} GMT` : text)
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs)
}

/** Where a field says that nothing is left: how long until that changes. */
function usedUpMs(headers: Headers, nowMs: number, ageMs: number, gaps: Gaps): number {
  const field = headers.get('ratelimit') ?? ''
  const seconds = listedSeconds(field, gaps) ?? namedSeconds(field)
  if (seconds !== undefined) return Math.max(0, seconds * 1_000 - ageMs)
  for (const name of ['ratelimit', 'x-ratelimit']) {
    if (headers.get(`${name}-remaining`)?.trim() !== '0') continue
    const reset = Number(headers.get(`${name}-reset`))
    if (!Number.isFinite(reset) || reset <= 0) continue
    // Some give the moment, in seconds or milliseconds, some the seconds that are left.
    if (reset > 100_000_000_000) return Math.max(0, reset - nowMs)
    return Math.max(0, reset > 1_000_000_000 ? reset * 1_000 - nowMs : reset * 1_000 - ageMs)
  }
  return 0
}

/**
 * Of a list of policies, as since draft-8: the longest time of those with nothing left. Undefined if
 * it is none, if one of its items is not as the draft has it, or if it tells no time.
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

/** A longer time than it takes for one unit is debt, or a wait that the server knows better. */
function withinS(windowS: number, gap: Gap | undefined): number {
  if (gap === undefined || windowS > Math.ceil(gap.unitS)) return windowS
  return Math.min(windowS, gap.costS)
}

/** The same of a dictionary, as in draft-7. */
function namedSeconds(field: string): number | undefined {
  const members = parseDictionary(field)
  const left = countOf(members?.get('remaining'))
  const seconds = countOf(members?.get('reset'))
  if (left === undefined || seconds === undefined) return undefined
  return left === 0 ? seconds : 0
}

/** A number of units or seconds. */
function countOf(item: BareItem | undefined): number | undefined {
  return item?.kind === 'integer' && Number(item.value) >= 0 ? Number(item.value) : undefined
}
