import type { Clock } from '../core/clock.ts'
import type { Decision } from '../core/decision.ts'
import type { RuleSet } from '../stores/store.ts'
import { createCalls } from './calls.ts'
import { type Checked, insert, type Line, type Place, remove, type Waiter, wake } from './line.ts'
import { type Outlook, outlookOf, usOf } from './wait-options.ts'

/**
 * WaitQueue keeps a line per key: higher priority first, and first come first served within one. Only
 * the head of a line decides. Where decisions are synchronous, so is everything but sleeping.
 */
export interface WaitQueue {
  /**
   * Resolves to what `take` gave when admitted, after the delay of a leaky bucket, which the decision
   * still tells; else to a refusal. Rejects when aborted or closed.
   */
  join<T extends Checked>(key: string, waiter: Waiter<T>): Promise<T | Checked>
  /** How many calls wait for a key. */
  waiting(key: string): number
  /** Makes each line that has this part check now. */
  wake(part: string): void
  wakeAll(): void
  /** Rejects all calls that wait. */
  close(reason: unknown): void
}

export function createWaitQueue(clock: Clock, nowUs: () => number): WaitQueue {
  const lines = new Map<string, Line>()
  const wakes = createCalls<string>()
  const stops = createCalls<AbortSignal | undefined, unknown>()

  async function join(key: string, waiter: Waiter): Promise<Checked> {
    const { signal, parts } = waiter
    const line = lines.get(key) ?? open(key, parts ?? [key])
    line.waiting += 1
    // One listener however many calls share the signal: runtimes report many as a leak.
    if (!stops.has(signal)) signal?.addEventListener('abort', aborted)
    let forget = () => {}
    try {
      return await new Promise((resolve, reject) => {
        const deadlineUs = nowUs() + waiter.maxWaitUs
        const place = { waiter, deadlineUs, overtaken: 0, resolve, reject }
        forget = stops.add(signal, (reason) => stop(line, place, reason))
        enter(line, place)
      })
    } finally {
      forget()
      if (!stops.has(signal)) signal?.removeEventListener('abort', aborted)
      line.waiting -= 1
      if (line.waiting === 0) {
        lines.delete(key)
        for (const unwake of line.wakes) unwake()
      }
    }
  }

  function aborted(this: AbortSignal): void {
    stops.run(this, this.reason)
  }

  function open(key: string, parts: readonly string[]): Line {
    const line: Line = { wakes: [], places: [], units: 0, waiting: 0, wakeUs: 0 }
    line.wakes = parts.map((part) => wakes.add(part, () => wake(line)))
    lines.set(key, line)
    return line
  }

  function enter(line: Line, place: Place): void {
    const { places, units } = line
    if (places.length > 0 && places.length >= place.waiter.maxWaiting) {
      place.deadlineUs = 0
      void foresee(line, place, units)
      return
    }
    const ahead = insert(line, place)
    if (line.head === undefined) {
      void serve(line)
      return
    }
    if (places[0] === place || place.deadlineUs < line.wakeUs) wake(line)
    void foresee(line, place, ahead)
  }

  /** Refuses a call behind the head if its turn is known to come too late. */
  async function foresee(line: Line, place: Place, ahead: number): Promise<void> {
    const { waiter } = place
    try {
      const set = waiter.set()
      const peeked = waiter.peek(set)
      const seen = peeked instanceof Promise ? await peeked : peeked
      if (place !== line.head) mayStay(line, place, outlookOf(seen, set.rules, ahead, waiter.cost))
    } catch (error) {
      stop(line, place, error)
    }
  }

  /** Refuses a call that cannot pass in time. */
  function mayStay(line: Line, place: Place, { waitUs, refusal }: Outlook): boolean {
    const leftUs = place.deadlineUs - nowUs()
    if (leftUs > 0 && waitUs <= leftUs) return true
    remove(line, place)
    place.resolve({ decision: refusal })
    return false
  }

  /** Serves a line until it is empty. */
  async function serve(line: Line): Promise<void> {
    for (;;) {
      const [head] = line.places
      line.head = head
      if (head === undefined) return
      line.isWoken = false
      try {
        const set = head.waiter.set()
        const seen = set.delays && head.waiter.peek(set)
        const checking = check(head, set, seen instanceof Promise ? await seen : seen)
        const checked = checking instanceof Promise ? await checking : checking
        if (checked.decision.allowed) void pass(line, head, checked)
        else if (settle(line, head, set, checked.decision)) await sleep(line)
      } catch (error) {
        stop(line, head, error)
      }
    }
  }

  /** Spends if it can, but takes no slot of a leaky bucket that is too far away. */
  function check({ waiter, deadlineUs }: Place, set: RuleSet, seen: Decision | false) {
    if (!seen || usOf(seen.delayMs) <= deadlineUs - nowUs()) return waiter.take(set)
    return { decision: { ...seen, allowed: false, retryAfterMs: seen.delayMs } }
  }

  async function pass(line: Line, place: Place, admitted: Checked): Promise<void> {
    const { waiter } = place
    const { delayMs } = admitted.decision
    if (!remove(line, place)) return waiter.dropped?.(admitted)
    try {
      if (delayMs > 0) {
        place.delay = new AbortController()
        await clock.sleep(delayMs, place.delay.signal)
      }
      place.resolve(admitted)
    } catch (error) {
      place.reject(error)
      waiter.dropped?.(admitted)
    }
  }

  /** Says when the line wakes up after a refusal of its head; false if the head does not stay. */
  function settle(line: Line, head: Place, set: RuleSet, refused: Decision): boolean {
    const { waiter } = head
    if (waiter.maxWaiting === 0) head.deadlineUs = 0
    if (!mayStay(line, head, outlookOf(refused, set.rules, 0, waiter.cost))) return false
    const now = nowUs()
    const retryUs = Math.max(1, usOf(refused.retryAfterMs))
    const pollUs = (waiter.pollUs?.(refused) ?? retryUs) * (1 + Math.random() / 4)
    line.wakeUs = now + Math.min(retryUs, pollUs)
    for (const place of [...line.places]) {
      // The time of one behind the head may be over before its turn has come.
      if (place.deadlineUs <= now) void foresee(line, place, waiter.cost)
      else line.wakeUs = Math.min(line.wakeUs, place.deadlineUs)
    }
    return true
  }

  /** Sleeps until it is time, or until woken. */
  async function sleep(line: Line): Promise<void> {
    if (line.isWoken) return
    line.sleeper = new AbortController()
    try {
      await clock.sleep((line.wakeUs - nowUs()) / 1_000, line.sleeper.signal)
    } catch (error) {
      if (!line.isWoken) throw error
    }
  }

  function stop(line: Line, place: Place, reason: unknown): void {
    remove(line, place)
    place.delay?.abort()
    place.reject(reason)
    if (place === line.head) wake(line)
  }

  return {
    join: join as WaitQueue['join'],
    waiting: (key) => lines.get(key)?.waiting ?? 0,
    wake: wakes.run,
    wakeAll: wakes.runAll,
    close: stops.runAll,
  }
}
