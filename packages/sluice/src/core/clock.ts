import { SluiceError, shown } from './errors.ts'

/**
 * Clock tells the time and waits. It belongs to a store: all limiters of one store share it.
 * `nowUs` gives whole microseconds since 1970; a store never lets it go backwards. It is read in the
 * midst of a decision, so it must not ask a limiter of that store.
 */
export interface Clock {
  nowUs(): number
  /** Resolves after `ms` milliseconds; rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

// Read once: performance.now() goes on from here whatever happens to the wall clock.
const ORIGIN_US = Math.round(performance.timeOrigin * 1_000)
const now = performance.now.bind(performance)

interface NodeProcess {
  readonly versions?: { readonly node?: string }
  hrtime(): [seconds: number, nanoseconds: number]
}

/** The same clock as performance.now(), and cheaper to read; the others have no better one. */
function readerOf(process: NodeProcess | undefined): () => number {
  if (!process?.versions?.node) return () => ORIGIN_US + Math.floor(now() * 1_000)
  const { hrtime } = process
  const zeroUs = ORIGIN_US - Math.round(zeroOf(hrtime))
  return () => {
    const time = hrtime()
    // `| 0` floors it, and lets V8 divide as integers.
    return time[0] * 1_000_000 + zeroUs + ((time[1] / 1_000) | 0)
  }
}

/** What `hrtime` read when performance.now() was 0. Reading it first makes the difference too small. */
function zeroOf(hrtime: NodeProcess['hrtime']): number {
  let zeroUs = Number.NEGATIVE_INFINITY
  for (let i = 0; i < 10; i += 1) {
    const [seconds, nanoseconds] = hrtime()
    zeroUs = Math.max(zeroUs, seconds * 1_000_000 + nanoseconds / 1_000 - now() * 1_000)
  }
  return zeroUs
}

/** Longer timeouts overflow 32 bits and fire at once. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1

/**
 * systemClock is anchored to the wall clock once, when the process starts, and monotonic after:
 * setting the machine's time neither mints nor takes units.
 */
export const systemClock: Clock = {
  nowUs: readerOf((globalThis as { process?: NodeProcess }).process),
  sleep(ms, signal) {
    const untilMs = now() + ms
    return new Promise((resolve, reject) => {
      let timer: ReturnType<typeof setTimeout>
      const abort = () => {
        clearTimeout(timer)
        reject(signal?.reason)
      }
      const sleepOn = () => {
        const leftMs = Math.ceil(untilMs - now())
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
  // It is steady by itself, and this is on the hot path.
  if (clock === systemClock) return clock.nowUs
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
