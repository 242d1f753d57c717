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

/** What `hrtime` read when performance.now() was 0: the closest of some readings on both sides. */
function zeroOf(hrtime: NodeProcess['hrtime']): number {
  const readUs = () => {
    const [seconds, nanoseconds] = hrtime()
    return seconds * 1_000_000 + nanoseconds / 1_000
  }
  let zeroUs = 0
  let closestUs = Number.POSITIVE_INFINITY
  for (let i = 0; i < 10; i += 1) {
    const beforeUs = readUs()
    const us = now() * 1_000
    const afterUs = readUs()
    if (afterUs - beforeUs >= closestUs) continue
    closestUs = afterUs - beforeUs
    zeroUs = (beforeUs + afterUs) / 2 - us
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
  async sleep(ms, signal) {
    const untilMs = now() + ms
    for (let left = ms; left > 0; left = untilMs - now()) {
      await timeout(Math.min(Math.ceil(left), LONGEST_TIMEOUT_MS), signal)
    }
    signal?.throwIfAborted()
  },
}

function timeout(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const abort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', abort, { once: true })
  })
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
