import type { Clock } from '../core/clock.ts'
import { type Decision, withoutDelay } from '../core/decision.ts'
import { createStops } from './stops.ts'
import type { Outlook } from './wait-options.ts'

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

interface Place extends Waiter {
  readonly deadlineUs: number
  resolve(decision: Decision): void
  reject(reason: unknown): void
}

interface Line {
  readonly places: Place[]
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
  const stops = createStops()

  async function join(key: string, waiter: Waiter): Promise<Decision> {
    const line = lines.get(key) ?? { places: [], units: 0, wakeUs: 0, wake() {} }
    const { waitUs, refusal } = waiter.outlook(line.units)
    if (waitUs > waiter.maxWaitUs) return refusal
    const first = line.places.length === 0 ? waiter.check() : refusal
    if (first.allowed && first.delayMs === 0) return first
    if (!first.allowed && line.places.length >= waiter.maxWaiting) return refusal
    return stops.run(waiter.signal, async ({ signal }) => {
      const decision = first.allowed ? first : await stand(key, line, waiter, signal)
      if (decision.delayMs === 0) return decision
      // The slot in a leaky bucket: no delay is left then.
      await clock.sleep(decision.delayMs, signal)
      return withoutDelay(decision)
    })
  }

  function stand(key: string, line: Line, waiter: Waiter, signal: AbortSignal): Promise<Decision> {
    return new Promise((resolve, reject) => {
      const deadlineUs = nowUs() + waiter.maxWaitUs
      const place = { ...waiter, deadlineUs, resolve, reject }
      signal.addEventListener('abort', () => {
        leave(line, place)
        reject(signal.reason)
        line.wake()
      })
      line.places.push(place)
      line.units += place.cost
      if (lines.has(key)) {
        if (deadlineUs < line.wakeUs) line.wake()
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
      const [head] = line.places
      const sleepUs = serveHead(line, head, now)
      if (sleepUs === 0) continue
      line.wakeUs = now + sleepUs
      for (const place of [...line.places]) {
        // The time of one behind the head may be over before its turn has come.
        const isLate = place !== head && place.deadlineUs <= now
        if (isLate) answer(line, place, () => place.outlook(head.cost).refusal)
        else line.wakeUs = Math.min(line.wakeUs, place.deadlineUs)
      }
      await sleep(line, line.wakeUs - now)
    }
    lines.delete(key)
  }

  /** Answers the head of the line and gives 0, or gives the microseconds until it may pass. */
  function serveHead(line: Line, head: Place, now: number): number {
    let retryAfterMs = 0
    answer(line, head, () => {
      const { waitUs, refusal } = head.outlook(0)
      if (waitUs > 0 && now + waitUs > head.deadlineUs) return refusal
      const decision = head.check()
      retryAfterMs = decision.retryAfterMs
      return decision.allowed ? decision : undefined
    })
    return Math.round(retryAfterMs * 1_000)
  }

  /** Answers a place, which leaves the line; undefined: it stays. */
  function answer(line: Line, place: Place, decide: () => Decision | undefined): void {
    try {
      const decision = decide()
      if (decision === undefined) return
      place.resolve(decision)
    } catch (error) {
      place.reject(error)
    }
    leave(line, place)
  }

  function leave(line: Line, place: Place): void {
    const at = line.places.indexOf(place)
    if (at < 0) return
    line.places.splice(at, 1)
    line.units -= place.cost
  }

  /** Sleeps until woken. A clock that cannot sleep rejects everybody: nobody would ever be served. */
  async function sleep(line: Line, us: number): Promise<void> {
    const sleeper = new AbortController()
    line.wake = () => sleeper.abort()
    try {
      await clock.sleep(us / 1_000, sleeper.signal)
    } catch (error) {
      if (sleeper.signal.aborted) return
      for (const place of [...line.places]) {
        leave(line, place)
        place.reject(error)
      }
    }
  }

  return {
    join,
    wake: (key) => lines.get(key)?.wake(),
    wakeAll() {
      for (const line of lines.values()) line.wake()
    },
    close: stops.close,
  }
}
