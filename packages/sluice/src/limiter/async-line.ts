import { type Clock, steadyClock } from '../core/clock.ts'
import { type Decision, withoutDelay } from '../core/decision.ts'
import { createStops } from './stops.ts'
import type { Outlook } from './wait-options.ts'

/** One call of `wait` that is in line, on a store that answers later. */
interface AsyncWaiter {
  readonly cost: number
  readonly maxWaitUs: number
  readonly maxWaiting: number
  readonly signal: AbortSignal | undefined
  /** Decides and spends. */
  check(): Promise<Decision>
  /** The least wait that is known with `ahead` units in line, and the answer if it is too long. */
  outlook(ahead: number): Promise<Outlook>
}

/** Line is the calls that wait for one key. */
interface Line {
  waiting: number
  units: number
  /** Resolves when everybody who is in line now has left. */
  last: Promise<void>
  /** Ends the sleep of the head. */
  wake(): void
}

/** AsyncLine keeps a line per key, first come first served. Only the head of a line decides. */
export interface AsyncLine {
  join(key: string, waiter: AsyncWaiter): Promise<Decision>
  wake(key: string): void
  wakeAll(): void
  close(reason: unknown): void
}

export function createAsyncLine(clock: Clock): AsyncLine {
  const lines = new Map<string, Line>()
  const nowUs = steadyClock(clock)
  const stops = createStops()

  async function join(key: string, waiter: AsyncWaiter): Promise<Decision> {
    const line = lines.get(key) ?? { waiting: 0, units: 0, last: Promise.resolve(), wake() {} }
    lines.set(key, line)
    const ahead = { waiting: line.waiting, units: line.units, before: line.last }
    line.waiting += 1
    line.units += waiter.cost
    const decided = stops.run(waiter.signal, (stop) =>
      // Ends a sleep that no call waits for any more.
      stand(line, waiter, ahead, stop.signal).finally(() => stop.abort()),
    )
    const left = () => {
      line.waiting -= 1
      line.units -= waiter.cost
      if (line.waiting === 0) lines.delete(key)
    }
    line.last = Promise.allSettled([ahead.before, decided.finally(left)]).then(() => {})
    return decided
  }

  async function stand(
    line: Line,
    waiter: AsyncWaiter,
    ahead: { waiting: number; units: number; before: Promise<void> },
    signal: AbortSignal,
  ): Promise<Decision> {
    const deadlineUs = nowUs() + waiter.maxWaitUs
    const { waitUs, refusal } = await waiter.outlook(ahead.units)
    if (waitUs > waiter.maxWaitUs) return refusal
    if (ahead.waiting > 0) {
      if (ahead.waiting >= waiter.maxWaiting) return refusal
      const isLate = sleepUntil(deadlineUs, signal).then(() => true)
      if (await Promise.race([ahead.before, isLate])) return (await waiter.outlook(0)).refusal
    }
    for (;;) {
      signal.throwIfAborted()
      const decision = await waiter.check()
      if (decision.allowed) return held(decision, signal)
      const retryUs = nowUs() + Math.round(decision.retryAfterMs * 1_000)
      if (waiter.maxWaiting === 0 || retryUs > deadlineUs) return decision
      await sleepUntil(retryUs, signal, line)
    }
  }

  /** Sleeps, unless it is woken as the head of a line. */
  async function sleepUntil(us: number, signal: AbortSignal, line?: Line): Promise<void> {
    const woken = new AbortController()
    if (line) line.wake = () => woken.abort()
    try {
      await clock.sleep((us - nowUs()) / 1_000, AbortSignal.any([signal, woken.signal]))
    } catch (error) {
      if (!woken.signal.aborted) throw error
    }
  }

  /** Holds an admitted call until its slot in a leaky bucket; no delay is left then. */
  async function held(decision: Decision, signal: AbortSignal): Promise<Decision> {
    if (decision.delayMs === 0) return decision
    await clock.sleep(decision.delayMs, signal)
    return withoutDelay(decision)
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
