import type { Clock } from '../core/clock.ts'
import { type Decision, withoutDelay } from '../core/decision.ts'
import { createAbortCalls } from './abort-calls.ts'

/** One call of `wait` that is in line. All its functions may throw. */
export interface Waiter {
  readonly cost: number
  readonly maxWaitUs: number
  readonly maxWaiting: number
  readonly signal: AbortSignal | undefined
  /** Decides and spends. */
  check(): Decision
  /** What it has to expect with `ahead` units in line before it, from one look. */
  outlook(ahead: number): Outlook
}

/** Outlook is the least wait that is known, and the answer to whom that is too long. */
export interface Outlook {
  readonly waitUs: number
  readonly refusal: Decision
}

interface Place extends Waiter {
  readonly deadlineUs: number
  resolve(decision: Decision): void
  reject(reason: unknown): void
}

interface Line {
  places: Place[]
  /** The units that all of them want. */
  units: number
  /** When the line is looked at again. */
  wakeUs: number
  /** Ends the present sleep, so that it is looked at now. */
  wake(): void
}

/** WaitQueue keeps a line per key, first come first served. Only the head of a line decides. */
export interface WaitQueue {
  /** Resolves when admitted or refused; rejects when aborted or closed. */
  join(key: string, waiter: Waiter): Promise<Decision>
  /** Something changed for the key, or for all: those in line need not wait as long as they think. */
  wake(key: string): void
  wakeAll(): void
  /** Rejects everybody in line. */
  close(reason: unknown): void
}

export function createWaitQueue(clock: Clock, nowUs: () => number): WaitQueue {
  const lines = new Map<string, Line>()
  const abortCalls = createAbortCalls()
  /** Ends the holds of admitted calls. */
  const holds = new Set<(reason: unknown) => void>()

  async function join(key: string, waiter: Waiter): Promise<Decision> {
    const line = lines.get(key)
    const waiting = line?.places.length ?? 0
    const { waitUs, refusal } = waiter.outlook(line?.units ?? 0)
    if (waitUs > waiter.maxWaitUs) return refusal
    if (waiting === 0) {
      const decision = waiter.check()
      if (decision.allowed) return held(decision, waiter.signal)
    }
    if (waiting >= waiter.maxWaiting) return refusal
    return stand(key, line, waiter)
  }

  function stand(key: string, joined: Line | undefined, waiter: Waiter): Promise<Decision> {
    const line = joined ?? { places: [], units: 0, wakeUs: 0, wake() {} }
    return new Promise((resolve, reject) => {
      const { signal } = waiter
      const done = abortCalls.on(signal, (reason) => {
        leave(line, place)
        reject(reason)
        line.wake()
      })
      const place: Place = {
        ...waiter,
        deadlineUs: nowUs() + waiter.maxWaitUs,
        resolve(decision) {
          done()
          resolve(decision.allowed ? held(decision, signal) : decision)
        },
        reject(reason) {
          done()
          reject(reason)
        },
      }
      line.places.push(place)
      line.units += place.cost
      if (joined) {
        if (place.deadlineUs < line.wakeUs) line.wake()
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
      line.wakeUs = now + sleepUs
      for (const { deadlineUs } of line.places) line.wakeUs = Math.min(line.wakeUs, deadlineUs)
      await sleep(line, line.wakeUs - now)
    }
    lines.delete(key)
  }

  /** Answers the head of the line and gives 0, or gives the microseconds until it may pass. */
  function serveHead(line: Line, now: number): number {
    const head = line.places[0]
    try {
      const { waitUs, refusal } = head.outlook(0)
      const inTime = waitUs === 0 || now + waitUs <= head.deadlineUs
      const decision = inTime ? head.check() : refusal
      if (inTime && !decision.allowed) return Math.round(decision.retryAfterMs * 1_000)
      head.resolve(decision)
    } catch (error) {
      head.reject(error)
    }
    leave(line, head)
    return 0
  }

  /** Refuses those behind the head whose time is over before their turn has come. */
  function refuseLate(line: Line, now: number): void {
    const head = line.places[0]
    for (const place of line.places.filter((one) => one !== head && one.deadlineUs <= now)) {
      leave(line, place)
      try {
        place.resolve(place.outlook(head.cost).refusal)
      } catch (error) {
        place.reject(error)
      }
    }
  }

  /** Sleeps until woken. A clock that cannot sleep rejects everybody: nobody would ever be served. */
  async function sleep(line: Line, us: number): Promise<void> {
    const sleeper = new AbortController()
    line.wake = () => sleeper.abort()
    try {
      await clock.sleep(us / 1_000, sleeper.signal)
    } catch (error) {
      if (!sleeper.signal.aborted) rejectAll(line, error)
    }
    line.wake = () => {}
  }

  function leave(line: Line, place: Place): void {
    const at = line.places.indexOf(place)
    if (at < 0) return
    line.places.splice(at, 1)
    line.units -= place.cost
  }

  function rejectAll(line: Line, reason: unknown): void {
    for (const place of line.places) place.reject(reason)
    line.places = []
    line.units = 0
  }

  /** Holds an admitted call until its slot in a leaky bucket; no delay is left then. */
  async function held(decision: Decision, signal: AbortSignal | undefined): Promise<Decision> {
    if (decision.delayMs === 0) return decision
    const hold = new AbortController()
    const end = (reason: unknown) => hold.abort(reason)
    const done = abortCalls.on(signal, end)
    holds.add(end)
    try {
      await clock.sleep(decision.delayMs, hold.signal)
    } finally {
      done()
      holds.delete(end)
    }
    return withoutDelay(decision)
  }

  return {
    join,
    wake: (key) => lines.get(key)?.wake(),
    wakeAll() {
      for (const line of lines.values()) line.wake()
    },
    close(reason) {
      for (const end of [...holds]) end(reason)
      for (const line of lines.values()) {
        rejectAll(line, reason)
        line.wake()
      }
    },
  }
}
