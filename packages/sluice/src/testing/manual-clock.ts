import type { Clock } from '../core/clock.ts'
import { SluiceError, shown } from '../core/errors.ts'

/** ManualClock stands still until it is told to go on. */
export interface ManualClock extends Clock {
  /** Goes on by `ms` milliseconds, rounded to the microsecond, and wakes the sleepers due. */
  advance(ms: number): void
}

/** 2026-01-01T00:00:00Z: the start of a second, a minute, an hour and a day. */
const START_US = 1_767_225_600_000_000

interface Sleeper {
  readonly dueUs: number
  wake(): void
}

/**
 * manualClock is the clock for tests: `memoryStore({ clock: manualClock() })`. It starts at
 * 2026-01-01T00:00:00Z unless told otherwise. Sleepers wake in the order in which they are due.
 */
export function manualClock(startUs: number = START_US): ManualClock {
  if (!Number.isSafeInteger(startUs) || startUs < 0) {
    throw new SluiceError(
      'SLUICE_CLOCK',
      `manualClock: the start must be whole microseconds since 1970, got ${shown(startUs)}.`,
    )
  }
  let nowUs = startUs
  const sleepers = new Set<Sleeper>()
  return {
    nowUs: () => nowUs,
    advance(ms) {
      const us = Math.round(ms * 1_000)
      if (!(us >= 0)) {
        throw new SluiceError(
          'SLUICE_CLOCK',
          `manualClock: advance(ms) takes 0 or more, got ${shown(ms)}.`,
        )
      }
      nowUs += us
      const due = [...sleepers].filter((sleeper) => sleeper.dueUs <= nowUs)
      for (const sleeper of due) sleepers.delete(sleeper)
      for (const sleeper of due.sort((a, b) => a.dueUs - b.dueUs)) sleeper.wake()
    },
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason)
        if (!(ms > 0)) return resolve()
        const abort = () => {
          sleepers.delete(sleeper)
          reject(signal?.reason)
        }
        const sleeper: Sleeper = {
          dueUs: nowUs + Math.round(ms * 1_000),
          wake() {
            signal?.removeEventListener('abort', abort)
            resolve()
          },
        }
        signal?.addEventListener('abort', abort, { once: true })
        sleepers.add(sleeper)
      }),
  }
}
