import type { Clock } from '../core/clock.ts'
import type { Decision } from '../core/decision.ts'
import { createCalls } from './calls.ts'
import {
  type Checked,
  enter,
  type Line,
  leave,
  type Place,
  unitsBefore,
  type Waiter,
  wake,
} from './line.ts'
import { outlookOf, usOf } from './wait-options.ts'

/**
 * WaitQueue keeps a queue per key: higher priority first, and first come, first served within one
 * priority. Only the head of a queue decides. With synchronous decisions, a call that passes at once
 * has spent when `join` returns.
 */
export interface WaitQueue {
  /**
   * Resolves to the result of `take` when admitted, after the delay of a leaky bucket, which the
   * decision still contains; else to a refusal. Rejects when aborted or closed.
   */
  join<T extends Checked>(key: string, waiter: Waiter<T>): Promise<T | Checked>
  /** Returns how many calls wait for a key. */
  waiting(key: string): number
  /** Makes the head of each queue with this part check now. */
  wake(part: string): void
  wakeAll(): void
  /** Rejects all waiting calls. */
  close(reason: unknown): void
}

/** createWaitQueue creates the queues of one limiter. */
export function createWaitQueue(clock: Clock, nowUs: () => number): WaitQueue {
  const lines = new Map<string, Line>()
  const wakes = createCalls<string>()
  const stops = createCalls<AbortSignal | undefined, unknown>()

  async function join(key: string, waiter: Waiter): Promise<Checked> {
    const { signal, parts = [key] } = waiter
    const line = lines.get(key) ?? open(key, parts)
    const place: Place = { waiter, overtaken: 0, isWoken: false }
    line.waiting += 1
    // One listener per signal: runtimes report many listeners as a leak.
    if (!stops.has(signal)) signal?.addEventListener('abort', aborted)
    const forget = stops.add(signal, (reason) => {
      place.stop = { reason }
      wake(place)
    })
    try {
      return await stand(line, place)
    } finally {
      forget()
      if (!stops.has(signal)) signal?.removeEventListener('abort', aborted)
      line.waiting -= 1
      if (line.waiting === 0) {
        lines.delete(key)
        for (const unwake of line.unwakes) unwake()
      }
    }
  }

  function aborted(this: AbortSignal): void {
    stops.run(this, this.reason)
  }

  function open(key: string, parts: readonly string[]): Line {
    const places: Place[] = []
    const unwakes = parts.map((part) => wakes.add(part, () => wake(places[0])))
    const line = { places, units: 0, waiting: 0, unwakes }
    lines.set(key, line)
    return line
  }

  /** Waits in the queue until admitted, or until the call is known to miss its deadline. */
  async function stand(line: Line, place: Place): Promise<Checked> {
    const { places } = line
    const { waiter } = place
    const deadlineUs = nowUs() + waiter.maxWaitUs
    const isFull = places.length >= waiter.maxWaiting
    if (!isFull || places.length === 0) enter(line, place)
    try {
      for (;;) {
        place.isWoken = false
        const set = waiter.set()
        const isHead = places[0] === place
        let seen: Decision | undefined
        if (!isHead || set.delays) {
          const peeked = waiter.peek(set)
          seen = peeked instanceof Promise ? await peeked : peeked
        }
        // Do not take a slot of a leaky bucket that is too far away.
        if (isHead && !(seen && usOf(seen.delayMs) > deadlineUs - nowUs())) {
          const taken = waiter.take(set)
          const checked = taken instanceof Promise ? await taken : taken
          seen = checked.decision
          if (seen.allowed && !place.stop) return await held(line, place, checked)
          if (seen.allowed) waiter.dropped?.(checked)
        }
        throwStopped(place)
        const ahead = unitsBefore(line, place)
        const { waitUs, refusal } = outlookOf(seen as Decision, set.rules, ahead, waiter.cost)
        const leftUs = deadlineUs - nowUs()
        if (isFull || leftUs <= 0 || waitUs > leftUs) return { decision: refusal }
        await sleep(place, isHead ? Math.min(leftUs, againUs(waiter, refusal)) : leftUs)
      }
    } finally {
      leave(line, place)
    }
  }

  /** Leaves the queue, and then waits out the delay of a leaky bucket. */
  async function held(line: Line, place: Place, admitted: Checked): Promise<Checked> {
    leave(line, place)
    place.isWoken = false
    const { delayMs } = admitted.decision
    try {
      if (delayMs > 0) await sleep(place, usOf(delayMs))
      return admitted
    } catch (error) {
      place.waiter.dropped?.(admitted)
      throw error
    }
  }

  /** Sleeps for a time, or until woken. */
  async function sleep(place: Place, us: number): Promise<void> {
    if (!place.isWoken) {
      place.sleeper = new AbortController()
      try {
        await clock.sleep(us / 1_000, place.sleeper.signal)
      } catch (error) {
        if (!place.isWoken) throw error
      }
    }
    throwStopped(place)
  }

  return {
    join: join as WaitQueue['join'],
    waiting: (key) => lines.get(key)?.waiting ?? 0,
    wake: wakes.run,
    wakeAll: wakes.runAll,
    close: stops.runAll,
  }
}

function throwStopped({ stop }: Place): void {
  if (stop) throw stop.reason
}

/** Returns how long the head sleeps after a refusal, in microseconds. */
function againUs(waiter: Waiter, refused: Decision): number {
  const retryUs = Math.max(1, usOf(refused.retryAfterMs))
  const pollUs = waiter.pollUs?.(refused) ?? retryUs
  return Math.min(retryUs, pollUs * (1 + Math.random() / 4))
}
