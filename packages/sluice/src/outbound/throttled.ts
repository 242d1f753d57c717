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

/** ThrottledFetch is a `fetch` that respects limits. */
export interface ThrottledFetch extends Throttled {
  (input: string | URL | Request, init?: RequestInit): Promise<Response>
}

/** ThrottledOptions are the options of `throttled`. */
export interface ThrottledOptions extends TurnOptions {
  /** The limiter. Several functions may share it. */
  readonly limiter: AnyLimiter
  /** The key of a call. Default: the origin of the URL. */
  readonly key?: string | ((request: Request) => string)
  /** The cost of a call. Default 1. */
  readonly cost?: number | CostByRule | ((request: Request) => number | CostByRule)
  /** The priority, as in `limiter.wait`. Default 0. */
  readonly priority?: number | ((request: Request) => number)
  /**
   * The most retries of a request that is answered by 429 or 503: 0 (default) to 100. No retry
   * if its body is a stream, or if the server requests a longer pause than `maxWaitMs`.
   */
  readonly retries?: number
  /** The clock of retries, for tests. Default: `systemClock`. */
  readonly clock?: Clock
}

const NAMES = [
  ...['limiter', 'key', 'cost', 'priority'],
  ...['maxWaitMs', 'maxWaiting', 'retries', 'clock'],
]

/**
 * throttled wraps a `fetch` so that it respects limits: each call waits in the queue of its key,
 * first come, first served. Units of a concurrency rule are released when the body of the response
 * has been read, cancelled, or has failed. If a server signals overload (429 or 503 with
 * Retry-After, or RateLimit fields without remaining units), calls for that key pause for the
 * requested time. The caller gets that response, unless there are `retries`. The signal of a call
 * aborts its waits. A wait that would be too long rejects with `SLUICE_WAIT_TOO_LONG`.
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

  /**
   * Sends a request at its turn, and returns the response with the pause that the server requests.
   */
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
      // Ignore errors of this response, which is retried.
      await response.body?.cancel().catch(() => {})
      await clock.sleep(pauseMs + backoffMs(retry), request.signal)
    }
  }

  return Object.assign(call, {
    waiting: (own?: string) => limiter.waiting(own ?? (key as string)),
  })
}
