import { SluiceError } from './errors.ts'
import { soon } from './soon.ts'

/** Timed is something that may take too long. What runs is a chain, the oldest first. */
export interface Timed {
  /** The moment at which it is too late. Set when its time begins; it may be put off. */
  dueMs: number
  isRunning: boolean
  older: Timed | undefined
  newer: Timed | undefined
  failed(error: unknown): void
}

/**
 * TimeLimit has one timer for any number of things. When the event loop was blocked, timers fire
 * before sockets are read, and what was to be sent has not been; so nobody is charged with the time
 * that a timer is late, and the sockets are read once more before anything is too late.
 */
export interface TimeLimit {
  /** Its time begins: it fails when that is over. */
  start(timed: Timed): void
  /** Its time ends; false if it was over. */
  stop(timed: Timed): boolean
  /** The outcome of a promise, as long as there is time. */
  limited<T>(promise: Promise<T>): Promise<T>
}

/** A timer that is late by more than this was kept waiting by something. */
const USUAL_LAG_MS = 5

export function createTimeLimit(limitMs: number): TimeLimit {
  let oldest: Timed | undefined
  let newest: Timed | undefined
  let timer: ReturnType<typeof setTimeout> | undefined

  function arm(): void {
    timer = undefined
    if (!oldest) return
    const ms = Math.max(0, oldest.dueMs - performance.now())
    const dueMs = performance.now() + ms
    timer = setTimeout(() => {
      const nowMs = performance.now()
      const lagMs = nowMs - dueMs
      if (lagMs > USUAL_LAG_MS) putOff(nowMs + Math.min(lagMs, limitMs))
      soon(() => stopLate(nowMs))
    }, ms)
  }

  function putOff(untilMs: number): void {
    for (let timed = oldest; timed && timed.dueMs < untilMs; timed = timed.newer) {
      timed.dueMs = untilMs
    }
  }

  function stopLate(nowMs: number): void {
    try {
      while (oldest && oldest.dueMs <= nowMs) {
        const timed = oldest
        timed.failed(tooLate(limitMs))
        stop(timed)
      }
    } finally {
      arm()
    }
  }

  function start(timed: Timed): void {
    timed.dueMs = performance.now() + limitMs
    timed.isRunning = true
    timed.older = newest
    if (newest) newest.newer = timed
    else oldest = timed
    newest = timed
    if (timer === undefined) arm()
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
    limited: (promise) =>
      new Promise((resolve, reject) => {
        const chain = { isRunning: false, older: undefined, newer: undefined }
        const timed: Timed = { dueMs: 0, ...chain, failed: reject }
        start(timed)
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
