import { SluiceError, shown } from './errors.ts'
import { createSystemTime } from './system-time.ts'

/**
 * Clock tells the time and waits. It belongs to a store: all limiters of one store share it.
 * `nowUs` gives whole microseconds since 1970; a store never lets it go backwards. It is read in the
 * midst of a decision, so it must not ask a limiter of that store.
 */
export interface Clock {
  /** Whole microseconds since 1970. */
  nowUs(): number
  /** Resolves after `ms` milliseconds; rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** Longer timeouts overflow 32 bits and fire at once. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1

/**
 * systemClock is anchored to the wall clock once, when it is first read, and monotonic after:
 * setting the machine's time neither mints nor takes units. The fake timers of test runners move it.
 */
export const systemClock: Clock = {
  nowUs: createSystemTime(),
  sleep(ms, signal) {
    const untilUs = systemClock.nowUs() + ms * 1_000
    return new Promise((resolve, reject) => {
      let timer: ReturnType<typeof setTimeout>
      const abort = () => {
        clearTimeout(timer)
        reject(signal?.reason)
      }
      const sleepOn = () => {
        const leftMs = Math.ceil((untilUs - systemClock.nowUs()) / 1_000)
        if (leftMs > 0) {
          timer = setTimeout(sleepOn, Math.min(leftMs, LONGEST_TIMEOUT_MS))
        } else {
          signal?.removeEventListener('abort', abort)
          resolve()
        }
      }
      if (signal?.aborted) return abort()
      signal?.addEventListener('abort', abort, { once: true })
      sleepOn()
    })
  },
}

/**
 * steadyClock reads `clock` and never goes backwards: a reading below the last, or one that is no
 * time at all, gives the last one again. It throws `SLUICE_CLOCK` when `clock` is no clock, or its
 * first reading no whole, positive number.
 */
export function steadyClock(clock: Clock): () => number {
  if (typeof clock?.nowUs !== 'function' || typeof clock.sleep !== 'function') {
    throw new SluiceError(
      'SLUICE_CLOCK',
      `a clock has the functions nowUs() and sleep(ms, signal), got ${shown(clock)}.`,
    )
  }
  // Steady by itself, and anchored for each store: a fake year does not last into the next store.
  if (clock === systemClock) return createSystemTime()
  const first = clock.nowUs()
  if (!Number.isSafeInteger(first) || first < 0) {
    throw new SluiceError(
      'SLUICE_CLOCK',
      `clock.nowUs() must give whole microseconds since 1970, got ${shown(first)}.`,
    )
  }
  // An array cell, because a double in a closure is boxed on every write.
  const last = new Float64Array([first])
  return () => {
    const read = clock.nowUs()
    if (read > last[0] && read <= Number.MAX_SAFE_INTEGER) last[0] = read
    return last[0]
  }
}
