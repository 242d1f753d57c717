import { SluiceError, shown } from './errors.ts'
import { createSystemTime } from './system-time.ts'

/**
 * Clock returns the time and waits. It belongs to a store: all limiters of a store share it. A
 * store never lets its time go backwards. Stores read the clock during a decision, so `nowUs` must
 * not call a limiter of that store.
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
 * systemClock is anchored to the wall clock at its first reading, and monotonic after that: setting
 * the machine's time neither adds nor removes units. The fake timers of test runners move it.
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
 * steadyClock returns a function that reads `clock` and never goes backwards: instead of an earlier
 * or invalid reading it returns the last one. Throws `SLUICE_CLOCK` if `clock` is not a clock, or
 * its first reading is not a whole number from 0 up.
 */
export function steadyClock(clock: Clock): () => number {
  if (typeof clock?.nowUs !== 'function' || typeof clock.sleep !== 'function') {
    throw new SluiceError(
      'SLUICE_CLOCK',
      `a clock has the functions nowUs() and sleep(ms, signal), got ${shown(clock)}.`,
    )
  }
  // Steady by itself. Anchored per store, so that a fake year does not carry over to the next store.
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
