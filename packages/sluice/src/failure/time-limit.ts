import { SluiceError } from '../core/errors.ts'
import { soon } from './soon.ts'

/** Timed is a call with a time limit. Running calls form a linked list, the oldest first. */
export interface Timed {
  /** The deadline, by `performance.now()`. Set at the start, and postponed at most once. */
  dueMs: number
  isRunning: boolean
  /** Whether `dueMs` is final. */
  isPutOff: boolean
  /** Whether the deadline had passed when it was postponed. */
  wasLate: boolean
  older: Timed | undefined
  newer: Timed | undefined
  failed(error: unknown): void
}

/**
 * TimeLimit enforces one limit on any number of calls with a single timer. After the event loop was
 * blocked, timers fire before sockets are read, and delayed requests have not been sent yet. So
 * sockets are read once more before a call fails. And once per call, a block postpones the deadline
 * by a moment, in which the call can be sent and answered.
 *
 * However busy the event loop is, no call takes longer than the limit, two turns of the loop and 30
 * ms: one turn until the timer fires, and one until the sockets are read or the timer fires again.
 */
export interface TimeLimit {
  /** Starts the time of a call at `nowMs`. The call fails at its deadline. */
  start(timed: Timed, nowMs: number): void
  /** Ends the time of a call; false if the call has failed or ended already. */
  stop(timed: Timed): boolean
  /** Postpones a deadline that passed while the event loop was blocked; false if it is final. */
  putOff(timed: Timed): boolean
  /** Returns the promise's outcome, or rejects at the limit. */
  limited<T>(promise: Promise<T>): Promise<T>
}

/** The event loop counts as blocked if a timer is later than this. */
const USUAL_LAG_MS = 10

/** Extra time after a block to send a request and get its answer; at most the limit. */
const MOMENT_MS = 20

/** createTimeLimit creates a time limit of `limitMs`. */
export function createTimeLimit(limitMs: number): TimeLimit {
  let oldest: Timed | undefined
  let newest: Timed | undefined
  let timer: ReturnType<typeof setTimeout> | undefined

  function arm(next: Timed | undefined): void {
    timer = next && setTimeout(fired, Math.max(0, next.dueMs - performance.now()))
  }

  function fired(): void {
    timer = undefined
    const nowMs = performance.now()
    if (oldest && nowMs - oldest.dueMs > USUAL_LAG_MS) {
      // Calls whose deadline had passed before have waited for two turns already.
      while (oldest?.wasLate && oldest.dueMs <= nowMs) fail(oldest)
      putAllOff(nowMs)
    }
    let next = oldest
    for (; next && next.dueMs <= nowMs; next = next.newer) next.isPutOff = true
    if (next !== oldest) soon(() => stopLate(nowMs))
    // Set the timer now: one that is set at the end of a turn misses the next turn.
    arm(next)
  }

  /** Postpones all deadlines up to `untilMs`, so that the list stays sorted by deadline. */
  function putAllOff(nowMs: number): void {
    const untilMs = nowMs + Math.min(limitMs, MOMENT_MS)
    for (let timed = oldest; timed && timed.dueMs < untilMs; timed = timed.newer) {
      if (timed.isPutOff) continue
      timed.isPutOff = true
      timed.wasLate = timed.dueMs <= nowMs
      timed.dueMs = untilMs
    }
  }

  function stopLate(nowMs: number): void {
    while (oldest && oldest.dueMs <= nowMs) fail(oldest)
  }

  function fail(timed: Timed): void {
    try {
      timed.failed(tooLate(limitMs))
    } finally {
      stop(timed)
    }
  }

  function start(timed: Timed, nowMs: number): void {
    timed.dueMs = nowMs + limitMs
    timed.isRunning = true
    timed.isPutOff = false
    timed.wasLate = false
    timed.older = newest
    if (newest) newest.newer = timed
    else oldest = timed
    newest = timed
    if (timer === undefined) arm(timed)
    else if (oldest === timed) timer.ref?.()
  }

  function stop(timed: Timed): boolean {
    if (!timed.isRunning) return false
    const { older, newer } = timed
    if (older) older.newer = newer
    else oldest = newer
    if (newer) newer.older = older
    else newest = older
    timed.isRunning = false
    timed.older = undefined
    timed.newer = undefined
    // Without running calls the timer must not keep the process alive.
    if (!oldest) timer?.unref?.()
    return true
  }

  return {
    start,
    stop,
    putOff(timed) {
      const nowMs = performance.now()
      if (!timed.isRunning || timed.isPutOff || nowMs - timed.dueMs <= USUAL_LAG_MS) return false
      putAllOff(nowMs)
      return true
    },
    limited: (promise) =>
      new Promise((resolve, reject) => {
        const timed: Timed = {
          dueMs: 0,
          isRunning: false,
          isPutOff: false,
          wasLate: false,
          older: undefined,
          newer: undefined,
          failed: reject,
        }
        start(timed, performance.now())
        const ended = () => stop(timed)
        promise.then(ended, ended)
        promise.then(resolve, reject)
      }),
  }
}

function tooLate(limitMs: number): SluiceError {
  return new SluiceError(
    'SLUICE_STORE_UNAVAILABLE',
    `the store did not answer within ${limitMs} ms.`,
  )
}
