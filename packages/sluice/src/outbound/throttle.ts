import { SluiceError, shown } from '../core/errors.ts'
import { checkFunction, checkOptions } from '../core/options.ts'
import type { CostByRule } from '../limiter/key-types.ts'
import { type AnyLimiter, checkTurns, type Throttled, type TurnOptions, takeTurn } from './turn.ts'

/** ThrottleOptions are the options of `throttle`. Functions get the arguments of the call. */
export interface ThrottleOptions<Args extends unknown[]> extends TurnOptions {
  /** The limiter. Several functions may share it. */
  readonly limiter: AnyLimiter
  /** The key of a call. Default: `'default'`, one queue for all calls. */
  readonly key?: string | ((...args: Args) => string)
  /** The cost of a call. Default 1. */
  readonly cost?: number | CostByRule | ((...args: Args) => number | CostByRule)
  /** The priority, as in `limiter.wait`. Default 0. */
  readonly priority?: number | ((...args: Args) => number)
  /** Returns the signal that aborts a call's wait. Default: none. */
  readonly signal?: (...args: Args) => AbortSignal | undefined
}

const NAMES = ['limiter', 'key', 'cost', 'priority', 'signal', 'maxWaitMs', 'maxWaiting']

/**
 * throttle wraps a function so that it respects limits: each call waits in the queue of its key,
 * first come, first served. Units of a concurrency rule are released when the promise of the call
 * settles. A wait that would be too long rejects with `SLUICE_WAIT_TOO_LONG`, and `work` is not
 * called.
 */
export function throttle<Args extends unknown[], Result>(
  work: (...args: Args) => Result | PromiseLike<Result>,
  options: ThrottleOptions<Args>,
): ((...args: Args) => Promise<Result>) & Throttled {
  checkOptions('throttle', options, NAMES)
  if (typeof work !== 'function') {
    throw new SluiceError(
      'SLUICE_OPTION',
      `throttle: the first argument must be a function, got ${shown(work)}.`,
    )
  }
  const { limiter, key = 'default', cost = 1, priority, signal, maxWaitMs, maxWaiting } = options
  checkTurns('throttle', limiter, key)
  checkFunction('throttle: signal', signal)

  async function call(...args: Args): Promise<Result> {
    const own = typeof key === 'function' ? key(...args) : key
    const units = typeof cost === 'function' ? cost(...args) : cost
    const release = await takeTurn(limiter, own, units, {
      ...{ signal: signal?.(...args), maxWaitMs, maxWaiting },
      priority: typeof priority === 'function' ? priority(...args) : priority,
    })
    try {
      return await work(...args)
    } finally {
      release?.()
    }
  }

  return Object.assign(call, {
    waiting: (own?: string) => limiter.waiting(own ?? (key as string)),
  })
}
