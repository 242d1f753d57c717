import { type Clock, systemClock } from '../core/clock.ts'
import { CENTURY_MS, durationUs } from '../core/duration.ts'
import { SluiceError, shown } from '../core/errors.ts'
import { checkOptions, checkWhole } from '../core/options.ts'
import type { CostByRule } from '../limiter/key-types.ts'
import { releasedByBody } from './body.ts'
import { pauseFor } from './pause.ts'
import { backoffMs, isRefusal, isRepeatable } from './retry.ts'
import { type AnyLimiter, checkTurns, type Throttled, type TurnOptions, takeTurn } from './turn.ts'

type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>

/** ThrottledFetch is a `fetch` that keeps to limits. */
export interface ThrottledFetch extends Throttled {
  (input: string | URL | Request, init?: RequestInit): Promise<Response>
}

/** ThrottledOptions are those of `throttled`. */
export interface ThrottledOptions extends TurnOptions {
  /** Decides when a request may go. Several may use one. */
  readonly limiter: AnyLimiter
  /** Whose limit a call counts against. Default: the origin it goes to. */
  readonly key?: string | ((request: Request) => string)
  /** What a call costs. Default 1. */
  readonly cost?: number | CostByRule | ((request: Request) => number | CostByRule)
  /** As that of `limiter.wait`. Default 0. */
  readonly priority?: number | ((request: Request) => number)
  /**
   * How often a request that is answered by 429 or 503 is sent again, at most: 0 (default) to 100. Not
   * if its body is a stream, or if the server asks for a longer pause than `maxWaitMs`.
   */
  readonly retries?: number
  /** What retries wait by, for tests. Default: `systemClock`. */
  readonly clock?: Clock
}

const NAMES = [
  ...['limiter', 'key', 'cost', 'priority'],
  ...['maxWaitMs', 'maxWaiting', 'retries', 'clock'],
]

/**
 * throttled is a `fetch` that keeps to limits: each call waits its turn, first come first served for
 * its key. What a concurrency rule holds is released when the body of the response has been read,
 * cancelled, or has failed. When a server answers that it has had enough (429 or 503 with Retry-After,
 * or RateLimit fields with nothing left), that key pauses for as long as it says. The response is
 * handed to the caller, unless there are `retries`. The signal of a call ends its waits; one that would
 * be too long rejects with `SLUICE_WAIT_TOO_LONG`.
 */
export function throttled(fetch: Fetch, options: ThrottledOptions): ThrottledFetch {
  checkOptions('throttled', options, NAMES)
  if (typeof fetch !== 'function') {
    throw new SluiceError(
      'SLUICE_OPTION',
      `throttled: the first argument must be a fetch, got ${shown(fetch)}.`,
    )
  }
  const { limiter, key, cost = 1, priority, maxWaitMs = 30_000, maxWaiting } = options
  const { retries = 0, clock = systemClock } = options
  checkTurns('throttled', limiter, key)
  const longestMs = durationUs('throttled: maxWaitMs', maxWaitMs, 0, CENTURY_MS) / 1_000
  checkWhole('throttled: retries', retries, 0, 100)

  /** Sends a request when its turn has come, and tells how long the server wants to be left alone. */
  async function send(request: Request): Promise<{ response: Response; pauseMs: number }> {
    const own = typeof key === 'function' ? key(request) : (key ?? new URL(request.url).origin)
    const units = typeof cost === 'function' ? cost(request) : cost
    const { signal } = request
    const release = await takeTurn(limiter, own, units, {
      ...{ signal, maxWaitMs, maxWaiting },
      priority: typeof priority === 'function' ? priority(request) : priority,
    })
    try {
      const response = await fetch(request)
      const one = typeof units === 'number' ? units : 1
      const pauseMs = await pauseFor(limiter, own, response, Date.now(), one)
      if (release === undefined) return { response, pauseMs }
      return { response: releasedByBody(response, request, release), pauseMs }
    } catch (error) {
      release?.()
      throw error
    }
  }

  async function call(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    const left = isRepeatable(input, init) ? retries : 0
    for (let retry = 0; ; retry += 1) {
      const request = new Request(input, init)
      const { response, pauseMs } = await send(request)
      if (retry === left || !isRefusal(response) || pauseMs > longestMs) return response
      // What is wrong with this response does not matter any more.
      await response.body?.cancel().catch(() => {})
      await clock.sleep(pauseMs + backoffMs(retry), request.signal)
    }
  }

  return Object.assign(call, {
    waiting: (own?: string) => limiter.waiting(own ?? (key as string)),
  })
}
