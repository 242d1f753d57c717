import type { Clock } from './clock.ts'
import type { Decision } from './decision.ts'

/** One call of `wait` that is in line. */
export interface Waiter {
  readonly cost: number
  readonly maxWaitMs: number
  readonly maxWaiting: number
  readonly signal: AbortSignal | undefined
  /** Decides and spends. */
  check(): Decision
  /** The least this caller must wait, in milliseconds, with `ahead` units in line before it. */
  knownWaitMs(ahead: number): number
  /** The answer to a caller who would have to wait that long. */
  refusal(waitMs: number): Decision
}

interface Place extends Waiter {
  readonly deadlineUs: number
  resolve(decision: Decision): void
  reject(reason: unknown): void
}

interface Line {
  places: Place[]
  /** Ends the present sleep, so that the line is looked at again. */
  wake(): void
}

/** WaitQueue keeps a line per key, first come first served. Only the head of a line decides. */
export interface WaitQueue {
  /** Resolves when admitted or refused; rejects when aborted or closed. */
  join(key: string, waiter: Waiter): Promise<Decision>
  /** Rejects everybody in line. */
  close(reason: unknown): void
}

export function createWaitQueue(clock: Clock, nowUs: () => number): WaitQueue {
  const lines = new Map<string, Line>()
  const closing = new AbortController()

  function join(key: string, waiter: Waiter): Promise<Decision> {
    const line = lines.get(key)
    const ahead = line ? line.places.reduce((sum, { cost }) => sum + cost, 0) : 0
    const waitMs = waiter.knownWaitMs(ahead)
    if (waitMs > waiter.maxWaitMs) return Promise.resolve(waiter.refusal(waitMs))
    if (!line) {
      const decision = waiter.check()
      if (decision.allowed) return held(decision, waiter.signal)
    }
    if ((line?.places.length ?? 0) >= waiter.maxWaiting) {
      return Promise.resolve(waiter.refusal(waitMs))
    }
    return stand(key, line, waiter)
  }

  function stand(key: string, joined: Line | undefined, waiter: Waiter): Promise<Decision> {
    const line = joined ?? { places: [], wake() {} }
    return new Promise((resolve, reject) => {
      const { signal } = waiter
      const leave = () => {
        line.places = line.places.filter((other) => other !== place)
        reject(signal?.reason)
        line.wake()
      }
      const done = () => signal?.removeEventListener('abort', leave)
      const place: Place = {
        ...waiter,
        deadlineUs: nowUs() + Math.round(waiter.maxWaitMs * 1_000),
        resolve(decision) {
          done()
          resolve(decision.allowed ? held(decision, signal) : decision)
        },
        reject(reason) {
          done()
          reject(reason)
        },
      }
      signal?.addEventListener('abort', leave, { once: true })
      line.places.push(place)
      if (joined) {
        line.wake()
      } else {
        lines.set(key, line)
        void serve(key, line)
      }
    })
  }

  /** Serves a line until it is empty. */
  async function serve(key: string, line: Line): Promise<void> {
    while (line.places.length > 0) {
      const now = nowUs()
      const sleepUs = serveHead(line, now)
      if (sleepUs === 0) continue
      refuseLate(line, now)
      const nextUs = Math.min(now + sleepUs, ...line.places.map((place) => place.deadlineUs))
      const sleeper = new AbortController()
      line.wake = () => sleeper.abort()
      await clock.sleep((nextUs - now) / 1_000, sleeper.signal).catch(() => {})
      line.wake = () => {}
    }
    lines.delete(key)
  }

  /** Answers the head of the line and gives 0, or gives the microseconds until it may pass. */
  function serveHead(line: Line, now: number): number {
    const head = line.places[0]
    try {
      const waitMs = head.knownWaitMs(0)
      const inTime = waitMs === 0 || now + waitMs * 1_000 <= head.deadlineUs
      const decision = inTime ? head.check() : head.refusal(waitMs)
      if (inTime && !decision.allowed) return Math.round(decision.retryAfterMs * 1_000)
      head.resolve(decision)
    } catch (error) {
      head.reject(error)
    }
    line.places.shift()
    return 0
  }

  /** Refuses those behind the head whose time is over before their turn has come. */
  function refuseLate(line: Line, now: number): void {
    const [head, ...others] = line.places
    line.places = [head, ...others.filter((place) => place.deadlineUs > now)]
    for (const place of others) {
      if (place.deadlineUs <= now) place.resolve(place.refusal(place.knownWaitMs(head.cost)))
    }
  }

  /** Holds an admitted call until its slot in a leaky bucket. */
  async function held(decision: Decision, signal: AbortSignal | undefined): Promise<Decision> {
    if (decision.delayMs > 0) {
      const ends = signal ? AbortSignal.any([signal, closing.signal]) : closing.signal
      await clock.sleep(decision.delayMs, ends)
    }
    return decision
  }

  return {
    join,
    close(reason) {
      closing.abort(reason)
      for (const line of lines.values()) {
        for (const place of line.places) place.reject(reason)
        line.places = []
        line.wake()
      }
    },
  }
}
