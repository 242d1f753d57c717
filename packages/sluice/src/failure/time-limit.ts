import { SluiceError } from '../core/errors.ts'
import { soon } from './soon.ts'

/** Timed is something that may take too long. What runs is a chain, the oldest first. */
export interface Timed {
  /** The moment at which it is too late. Set when its time begins; it is put off once at most. */
  dueMs: number
  isRunning: boolean
  /** There is no more time than until `dueMs`. */
  isPutOff: boolean
  /** It was too late already when it was put off. */
  wasLate: boolean
  older: Timed | undefined
  newer: Timed | undefined
  failed(error: unknown): void
}

/**
 * TimeLimit has one timer for any number of things. When the event loop was blocked, timers fire
 * before sockets are read, and what was to be sent has not been. So the sockets are read once more
 * before anything is too late, and after a block there is a moment to send and be answered, once.
 *
 * Nothing takes longer than the limit, two turns of the event loop and 30 ms, however busy the loop
 * is: one turn until the timer fires, and one until the sockets were read or it fires again.
 */
export interface TimeLimit {
  /** Its time begins, at this moment: it fails when that is over. */
  start(timed: Timed, nowMs: number): void
  /** Its time ends; false if it was over. */
  stop(timed: Timed): boolean
  /** Puts off what is late because the event loop was blocked; false if there is no more time. */
  putOff(timed: Timed): boolean
  /** The outcome of a promise, as long as there is time. */
  limited<T>(promise: Promise<T>): Promise<T>
}

/** The event loop was blocked if a timer is later than this. */
const USUAL_LAG_MS = 10

/** How long there is to send and be answered after a block, if the limit is not shorter. */
const MOMENT_MS = 20

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
      // What was late before has waited for two turns already.
      while (oldest?.wasLate && oldest.dueMs <= nowMs) fail(oldest)
      putAllOff(nowMs)
    }
    let next = oldest
    for (; next && next.dueMs <= nowMs; next = next.newer) next.isPutOff = true
    if (next !== oldest) soon(() => stopLate(nowMs))
    // Not later: a timer that is set at the end of a turn misses the next one.
    arm(next)
  }

  /** Also what is about to be late: the chain stays in the order of time. */
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
    // With nobody waiting the timer is no reason to keep a process alive.
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
