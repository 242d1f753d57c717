import { SluiceError } from './errors.ts'
import { soon } from './soon.ts'

/** Timed is something that may take too long. */
export interface Timed {
  /** The moment at which it is too late. Set when its time begins; it may be put off. */
  dueMs: number
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
  const running = new Set<Timed>()
  let timer: ReturnType<typeof setTimeout> | undefined

  function arm(): void {
    const [oldest] = running
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
    for (const timed of running) if (timed.dueMs < untilMs) timed.dueMs = untilMs
  }

  function stopLate(nowMs: number): void {
    try {
      for (const timed of running) {
        if (timed.dueMs > nowMs) break
        timed.failed(tooLate(limitMs))
        running.delete(timed)
      }
    } finally {
      arm()
    }
  }

  function start(timed: Timed): void {
    timed.dueMs = performance.now() + limitMs
    running.add(timed)
    if (timer === undefined) arm()
    else if (running.size === 1) timer.ref?.()
  }

  function stop(timed: Timed): boolean {
    const wasRunning = running.delete(timed)
    // With nobody waiting the timer is no reason to keep a process alive.
    if (running.size === 0) timer?.unref?.()
    return wasRunning
  }

  return {
    start,
    stop,
    limited: (promise) =>
      new Promise((resolve, reject) => {
        const timed = { dueMs: 0, failed: reject }
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
