import { soon } from '../../failure/soon.ts'
import type { Request } from '../store.ts'
import type { Acted } from './act.ts'
import type { Batch, Engine, Found, Trip } from './engine.ts'
import type { EngineTime } from './engine-time.ts'
import { jointBatch } from './joint-rows.ts'
import { answerTrip, isOnlyRead, type Unswapped } from './outcome.ts'
import { createQueue, requestsOf, type Taken } from './queue.ts'

/** The most decisions of one trip. */
const MOST = 128

/** So many requests are worth two trips, after so many trips in a row that had several. */
const WORTH_TWO = 24
const STEADY = 8

/**
 * Requests wait for a trip under way only if it takes less than this part of their time: they would
 * be late after it and their own.
 */
const WORTH_WAITING = 1 / 3

/** Lane sends the requests of one slot, in order. */
export interface Lane {
  /** Gets in line. */
  add(request: Request): void
  /** Sends what is in line, if it is time. */
  go(nowMs: number, timeoutMs: number): void
}

/** Answers tells the callers of a table what came of their requests. */
export interface Answers {
  /** For the requests of one trip. */
  actedOn(trip: Trip): Acted
  failed(request: Request, error: unknown): void
  /** Another writer was faster with so many rows. */
  contended(rows: number): void
}

/** Sent is a trip under way. */
interface Sent {
  /** Its deadline by the engine's clock. */
  untilUs: number
  /** One that was sent before came back undecided: nothing is sent until it has come back, too. */
  isStale: boolean
  /** One with a later deadline was sent after it. */
  isOvertaken: boolean
}

/**
 * createLane sends a request at once when none is under way, and gathers what comes while one is: up
 * to 128, which then go together.
 */
export function createLane(
  engine: Engine,
  nameOf: (key: string) => string,
  time: EngineTime,
  answers: Answers,
): Lane {
  const queue = createQueue(answers.failed)
  /** The trips under way; those are given up that may never end. */
  const trips = new Set<Sent>()
  let lastSentMs = 0
  /** The shortest trip so far: how far away the engine is, however busy it is now. */
  let shortestMs = Number.POSITIVE_INFINITY
  let isDue = false
  /** Trips in a row that had several requests. */
  let sharedTrips = 0

  function go(nowMs: number, timeoutMs: number): void {
    if (trips.size > 0 && nowMs - lastSentMs > timeoutMs) {
      trips.clear()
      queue.releaseAll()
    }
    const isFar = Number.isFinite(shortestMs) && shortestMs > WORTH_WAITING * timeoutMs
    flush((trips.size === 0 && !isDue) || isFar ? 1 : MOST)
  }

  /**
   * Sends what is in line, as long as there is that much. Where a trip came back undecided, since its
   * deadline was too early, others may as well: nothing overtakes those.
   */
  function flush(least: number): void {
    for (const { isStale } of trips) if (isStale) return
    const most = isBusy() ? Math.ceil(queue.length / 2) : MOST
    while (queue.length >= least) {
      const taken = queue.take(performance.now(), most)
      if (taken.firsts.length > 0) void send(batchOf(taken))
    }
  }

  /** Limiters have keys with fields, or without: so have all requests of a lane. */
  function batchOf({ firsts, untilMs }: Taken): Batch {
    if (firsts[0].rows) return { firsts, untilMs, ...jointBatch(firsts) }
    return { firsts, untilMs, names: firsts.map(({ key }) => nameOf(key)), joint: undefined }
  }

  /**
   * Under a steady load that does not fill trips, requests go in two, so that the engine works on one
   * while the other's callers are served.
   */
  function isBusy(): boolean {
    const { length } = queue
    return trips.size === 0 && sharedTrips >= STEADY && length >= WORTH_TWO && length < MOST
  }

  async function send(batch: Batch): Promise<void> {
    const sentMs = performance.now()
    const trip: Sent = { untilUs: 0, isStale: false, isOvertaken: false }
    const isShared = batch.firsts.length > 1 || batch.firsts[0].next !== undefined
    sharedTrips = isShared ? sharedTrips + 1 : 0
    lastSentMs = sentMs
    trips.add(trip)
    for (const first of batch.firsts) {
      // No other trip may be about their key.
      if (isOnlyRead(engine, first)) queue.hold(first.key)
      for (const request of requestsOf(first)) request.isSent = true
    }
    try {
      const found = await engine.visit(batch, () => deadlineOf(trip, batch))
      shortestMs = Math.min(shortestMs, performance.now() - sentMs)
      time.note(found.nowUs, sentMs)
      if (found.texts) finish(batch, found, found.texts, sentMs)
      else again(batch.firsts, trip)
    } catch (error) {
      fail(batch.firsts, error)
    } finally {
      trips.delete(trip)
      if ((trips.size === 0 || trip.isStale) && (queue.length > 0 || isShared)) flushSoon()
    }
  }

  /** The deadline of a trip that is sent now: a later one than others have may pass where they do not. */
  function deadlineOf(trip: Sent, { untilMs }: Batch): number {
    trip.untilUs = time.at(untilMs)
    for (const other of trips) if (other.untilUs < trip.untilUs) other.isOvertaken = true
    return trip.untilUs
  }

  function fail(firsts: readonly Request[], error: unknown): void {
    for (const first of firsts) {
      for (const request of requestsOf(first)) answers.failed(request, error)
      if (isOnlyRead(engine, first)) queue.release(first.key)
    }
  }

  /** Nothing was decided, since the deadline was too early: puts the requests back in line. */
  function again(firsts: readonly Request[], { isOvertaken }: Sent): void {
    if (isOvertaken) {
      fail(firsts, new Error('the store was too busy to be asked in time'))
      return
    }
    for (const trip of trips) trip.isStale = true
    queue.putBack(firsts)
    for (const { key } of firsts) queue.release(key)
  }

  /** Sends once the callers that were just answered have had the time to ask again. */
  function flushSoon(): void {
    if (isDue) return
    isDue = true
    soon(() => {
      isDue = false
      flush(1)
    })
  }

  /** Answers what the engine has decided, and swaps the rows that it has only read. */
  function finish(
    batch: Batch,
    found: Found,
    texts: readonly (string | null)[],
    sentMs: number,
  ): void {
    const acted = answers.actedOn({ nowUs: found.nowUs, sentMs })
    const untilUs = () => time.at(batch.untilMs)
    const { failed } = answers
    const left = answerTrip(engine, { batch, found, texts, untilUs, acted, failed })
    if (left.firsts.length > 0) void swap(left)
  }

  /** Requests about these keys stay in line meanwhile, so that they keep their order. */
  async function swap({ firsts, swap }: Unswapped): Promise<void> {
    for (const { key } of firsts) queue.hold(key)
    const lost = await swap()
    for (const first of firsts) if (!lost.includes(first)) queue.release(first.key)
    if (lost.length > 0) {
      answers.contended(lost.length)
      queue.putBack(lost)
      // At once or after a while: else the writer that has won would be ahead again each time.
      if (Math.random() < 1 / 2) retry(lost)
      else setTimeout(() => retry(lost), Math.random() * 2 * shortestMs)
    }
    flushSoon()
  }

  function retry(lost: readonly Request[]): void {
    for (const { key } of lost) queue.release(key)
    flush(1)
  }

  return { add: queue.add, go }
}
