import type { Request, RequestRow, RuleSet } from '../store.ts'

/**
 * Taken is the requests for one round trip, in order: the first of each key, which links to the
 * others. A request that follows one for another key with a shared row is a first again.
 */
export interface Taken {
  readonly firsts: readonly Request[]
  /** The moment of `performance.now()` by which the trip must have started. */
  readonly untilMs: number
}

/** Queue holds the requests of a lane that wait for a round trip, in order of arrival. */
export interface Queue {
  /** The number of requests that can be sent now. */
  length: number
  add(request: Request): void
  /**
   * Takes up to `most` requests for one trip. Requests for the same key, or on the same row, must
   * have the same rules to share a trip. Requests past their deadline fail.
   */
  take(nowMs: number, most: number): Taken
  /** Puts requests back at their old positions; those of held keys join the held requests. */
  putBack(firsts: readonly Request[]): void
  /** Holds back requests for a key while another request reads and then writes its row. */
  hold(key: string): void
  release(key: string): void
  releaseAll(): void
}

/** createQueue creates an empty queue. It calls `failed` for requests past their deadline. */
export function createQueue(failed: (request: Request, error: unknown) => void): Queue {
  let waiting: Request[] = []
  let added = 0
  /** The held keys and their requests. */
  const held = new Map<string, Request[]>()

  function set(requests: Request[]): void {
    waiting = requests
    queue.length = requests.length
  }

  function join(requests: readonly Request[]): void {
    if (requests.length === 0) return
    set([...requests, ...waiting].sort((a, b) => a.order - b.order))
  }

  function isLate(request: Request, nowMs: number): boolean {
    if (request.dueMs >= nowMs || request.putOff?.()) return false
    failed(request, new Error('the store was too busy to be asked in time'))
    return true
  }

  function takeOne(nowMs: number): Taken {
    const [request] = waiting
    set([])
    const isTaken = !isHeld(request, heldRows()) && !isLate(request, nowMs)
    return { firsts: isTaken ? [request] : [], untilMs: request.dueMs }
  }

  /** The rows of the requests that are held, and the line of each. */
  function heldRows(): Map<string, Request[]> {
    const rows = new Map<string, Request[]>()
    for (const line of held.values()) for (const one of line) noteRows(one, line, rows)
    return rows
  }

  /** Holds a request about a key that is held, or about a row that one in line is about. */
  function isHeld(request: Request, rows: Map<string, Request[]>): boolean {
    if (held.size === 0) return false
    const row = request.rows?.find(({ name }) => rows.has(name))
    const line = held.get(request.key) ?? (row && rows.get(row.name))
    if (!line) return false
    line.push(request)
    noteRows(request, line, rows)
    return true
  }

  function take(nowMs: number, most: number): Taken {
    if (waiting.length === 1) return takeOne(nowMs)
    const lasts = new Map<string, Request>()
    const lastOfRow = new Map<string, Request>()
    const sets = new Map<string, RuleSet>()
    const firsts: Request[] = []
    const isLatest = (last: Request, rows: readonly RequestRow[] = []) =>
      rows.every(({ name }) => lastOfRow.get(name) === last)
    const lines = heldRows()
    let untilMs = Number.POSITIVE_INFINITY
    let taken = 0
    for (; taken < waiting.length && taken < most; taken += 1) {
      const request = waiting[taken]
      const last = lasts.get(request.key)
      if (last && last.set !== request.set) break
      if (request.rows && !fitsIn(sets, request.rows)) break
      if (isHeld(request, lines) || isLate(request, nowMs)) continue
      // After a request for another key with a shared row, start a new first: order is kept.
      if (last && isLatest(last, request.rows)) last.next = request
      else firsts.push(request)
      lasts.set(request.key, request)
      for (const { name } of request.rows ?? []) lastOfRow.set(name, request)
      if (request.dueMs < untilMs) untilMs = request.dueMs
    }
    set(taken === waiting.length ? [] : waiting.slice(taken))
    return { firsts, untilMs }
  }

  const queue: Queue = {
    length: 0,
    add(request) {
      added += 1
      request.order = added
      queue.length = waiting.push(request)
    },
    take,
    putBack(firsts) {
      const requests = firsts.flatMap(requestsOf)
      for (const request of requests) request.next = undefined
      const lines = heldRows()
      join(requests.filter((request) => !isHeld(request, lines)))
    },
    hold: (key) => void held.set(key, held.get(key) ?? []),
    release(key) {
      const line = held.get(key) ?? []
      held.delete(key)
      join(line)
    },
    releaseAll() {
      const lines = [...held.values()].flat()
      held.clear()
      join(lines)
    },
  }
  return queue
}

function noteRows({ rows }: Request, line: Request[], lines: Map<string, Request[]>): void {
  for (const { name } of rows ?? []) lines.set(name, line)
}

/** Records the rules of rows by name; false if one of the rows has other rules in this trip. */
function fitsIn(sets: Map<string, RuleSet>, rows: readonly RequestRow[]): boolean {
  if (rows.some(({ name, set }) => (sets.get(name) ?? set) !== set)) return false
  for (const { name, set } of rows) sets.set(name, set)
  return true
}

/** requestsOf lists all requests for one key, from the first on. */
export function requestsOf(first: Request): Request[] {
  const requests: Request[] = []
  for (let one: Request | undefined = first; one; one = one.next) requests.push(one)
  return requests
}
