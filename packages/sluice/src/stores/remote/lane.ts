import { soon } from '../../failure/soon.ts'
import type { Request } from '../store.ts'
import type { Acted } from './act.ts'
import type { Batch, Engine, Found, Trip } from './engine.ts'
import type { EngineTime } from './engine-time.ts'
import { jointBatch } from './joint-rows.ts'
import { answerTrip, isOnlyRead, type Unswapped } from './outcome.ts'
import { createQueue, requestsOf, type Taken } from './queue.ts'

/** The most requests per round trip. */
const MOST = 128

/** Split at least this many requests into two trips, after this many shared trips in a row. */
const WORTH_TWO = 24
const STEADY = 8

/**
 * Requests wait for the trip in flight only if trips take less than this part of the timeout.
 * Otherwise they could miss their deadline: they wait for that trip and then for their own.
 */
const WORTH_WAITING = 1 / 3

/** Lane sends the requests of one slot, in order. */
export interface Lane {
  /** Queues a request. */
  add(request: Request): void
  /** Sends queued requests, unless they should wait for a trip in flight. */
  go(nowMs: number, timeoutMs: number): void
}

/** Answers reports the results of requests to a table's callers. */
export interface Answers {
  /** Returns the callback for the requests of one trip. */
  actedOn(trip: Trip): Acted
  failed(request: Request, error: unknown): void
  /** Counts rows that were lost to another writer. */
  contended(rows: number): void
}

/** Sent is a trip in flight. */
interface Sent {
  /** Its deadline by the engine's clock. */
  untilUs: number
  /** An earlier trip came back undecided: send nothing before this one has come back, too. */
  isStale: boolean
  /** A trip with a later deadline was sent after this one. */
  isOvertaken: boolean
}

/**
 * createLane creates a lane. It sends a request at once if no trip is in flight. While one is, it
 * queues requests and then sends up to 128 of them together.
 */
export function createLane(
  engine: Engine,
  nameOf: (key: string) => string,
  time: EngineTime,
  answers: Answers,
): Lane {
  const queue = createQueue(answers.failed)
  /** The trips in flight. Trips that exceed the timeout are dropped: they may never end. */
  const trips = new Set<Sent>()
  let lastSentMs = 0
  /** The shortest trip so far: the latency to the engine when it is idle. */
  let shortestMs = Number.POSITIVE_INFINITY
  let isDue = false
  /** How many trips in a row had several requests. */
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
   * Sends queued requests while there are at least `least`. If a trip came back undecided because
   * its deadline was too early, others in flight may do so, too: wait for them, so that requests
   * keep their order.
   */
  function flush(least: number): void {
    for (const { isStale } of trips) if (isStale) return
    const most = isBusy() ? Math.ceil(queue.length / 2) : MOST
    while (queue.length >= least) {
      const taken = queue.take(performance.now(), most)
      if (taken.firsts.length > 0) void send(batchOf(taken))
    }
  }

  /** Builds a batch. Either all requests of a lane have keys with fields, or none has. */
  function batchOf({ firsts, untilMs }: Taken): Batch {
    if (firsts[0].rows) return { firsts, untilMs, ...jointBatch(firsts) }
    return { firsts, untilMs, names: firsts.map(({ key }) => nameOf(key)), joint: undefined }
  }

  /**
   * Tells whether to split requests into two trips: under a steady load that does not fill trips,
   * the engine then works on one while this process serves the callers of the other.
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
      // The row is read and then swapped: no other trip may touch the key in between.
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

  /**
   * Returns the deadline of a trip, and marks trips with earlier ones: it may succeed where they
   * fail.
   */
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

  /** Requeues the requests of a trip that came back undecided, because its deadline was too early. */
  function again(firsts: readonly Request[], { isOvertaken }: Sent): void {
    if (isOvertaken) {
      fail(firsts, new Error('the store was too busy to be asked in time'))
      return
    }
    for (const trip of trips) trip.isStale = true
    queue.putBack(firsts)
    for (const { key } of firsts) queue.release(key)
  }

  /** Sends after the callers just answered had a chance to make further requests. */
  function flushSoon(): void {
    if (isDue) return
    isDue = true
    soon(() => {
      isDue = false
      flush(1)
    })
  }

  /** Answers requests that the engine has decided, and swaps the rows that it has only read. */
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

  /** Swaps rows. Meanwhile, requests about these keys stay queued, so that they keep their order. */
  async function swap({ firsts, swap }: Unswapped): Promise<void> {
    for (const { key } of firsts) queue.hold(key)
    const lost = await swap()
    for (const first of firsts) if (!lost.includes(first)) queue.release(first.key)
    if (lost.length > 0) {
      answers.contended(lost.length)
      queue.putBack(lost)
      // Random backoff: otherwise the writer that has won would win every time.
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
