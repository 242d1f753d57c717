import { SluiceError } from './errors.ts'
import { soon } from './soon.ts'

/** TimeLimit gives a promise's outcome, or rejects when that takes too long. */
export type TimeLimit = <T>(promise: Promise<T>) => Promise<T>

interface Running {
  readonly dueMs: number
  reject(error: unknown): void
}

/**
 * createTimeLimit has one timer for any number of promises. When the event loop was blocked, timers
 * fire before sockets are read; so the sockets are read once more before anything is too late.
 */
export function createTimeLimit(limitMs: number): TimeLimit {
  const running = new Set<Running>()
  let isArmed = false

  function arm(): void {
    const [oldest] = running
    isArmed = oldest !== undefined
    if (oldest) setTimeout(() => soon(stopLate), Math.max(0, oldest.dueMs - performance.now()))
  }

  function stopLate(): void {
    const nowMs = performance.now()
    for (const each of running) {
      if (each.dueMs > nowMs) break
      running.delete(each)
      each.reject(tooLate(limitMs))
    }
    arm()
  }

  return (promise) =>
    new Promise((resolve, reject) => {
      const each = { dueMs: performance.now() + limitMs, reject }
      running.add(each)
      if (!isArmed) arm()
      promise.then(
        (value) => {
          running.delete(each)
          resolve(value)
        },
        (error) => {
          running.delete(each)
          reject(error)
        },
      )
    })
}

function tooLate(limitMs: number): SluiceError {
  return new SluiceError(
    'SLUICE_STORE_UNAVAILABLE',
    `the store did not answer within ${limitMs} ms.`,
  )
}
