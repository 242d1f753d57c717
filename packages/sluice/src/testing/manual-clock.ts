import type { Clock } from '../core/clock.ts'
import { CENTURY_MS, type Duration, durationUs } from '../core/duration.ts'
import { SluiceError, shown } from '../core/errors.ts'

/** ManualClock is a clock that stands still until `advance` is called. */
export interface ManualClock extends Clock {
  /**
   * Advances by `'1m'` or by milliseconds, rounded to the microsecond, and wakes sleepers that are
   * due.
   */
  advance(duration: Duration): void
}

/** 2026-01-01T00:00:00Z, at which a second, minute, hour and day start. */
const START_US = 1_767_225_600_000_000

/** A start this small is taken for today's milliseconds: as microseconds it would be January 1970. */
const FIRST_MS_US = Date.UTC(2000, 0)
const LAST_MS_US = Date.UTC(2100, 0)

interface Sleeper {
  readonly dueUs: number
  wake(): void
}

/**
 * manualClock creates a clock for tests: `memoryStore({ clock: manualClock() })`. It starts at
 * 2026-01-01T00:00:00Z by default. Another start is in microseconds: `manualClock(Date.now() *
 * 1_000)`. Sleepers wake in the order in which they are due.
 */
export function manualClock(startUs: number = START_US): ManualClock {
  checkStart(startUs)
  let nowUs = startUs
  const sleepers = new Set<Sleeper>()
  return {
    nowUs: () => nowUs,
    advance(duration) {
      nowUs += durationUs('manualClock: the duration of advance()', duration, 0, CENTURY_MS)
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

function checkStart(startUs: number): void {
  const isMs = startUs >= FIRST_MS_US && startUs < LAST_MS_US
  if (Number.isSafeInteger(startUs) && startUs >= 0 && !isMs) return
  const remedy = isMs ? ' These look like milliseconds: pass Date.now() * 1_000.' : ''
  throw new SluiceError(
    'SLUICE_CLOCK',
    `manualClock: the start must be whole microseconds since 1970, got ${shown(startUs)}.${remedy}`,
  )
}
