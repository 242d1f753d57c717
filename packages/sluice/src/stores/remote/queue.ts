import type { Request, RequestRow, RuleSet } from '../store.ts'

/**
 * Taken is requests that may go together, in their order: of each key the first, which has the others behind
 * it. Those behind requests about other keys that share a row are firsts of their own.
 */
export interface Taken {
  readonly firsts: readonly Request[]
  /** The moment of our clock up to which the trip must have begun. */
  readonly untilMs: number
}

/** Queue is the requests of a lane that wait for a trip, in the order they came. */
export interface Queue {
  /** How many could go now. */
  length: number
  add(request: Request): void
  /**
   * Takes up to `most` requests for one trip: of one key, and of one row, only those with the same
   * rules. Those that are late fail.
   */
  take(nowMs: number, most: number): Taken
  /** Puts requests back where they were in line; held ones go with the others of their key. */
  putBack(firsts: readonly Request[]): void
  /** Keeps requests about a key in line, as one is at work that reads and then writes its row. */
  hold(key: string): void
  release(key: string): void
  releaseAll(): void
}

/** createQueue is an empty queue; `failed` is told of requests that are late. */
export function createQueue(failed: (request: Request, error: unknown) => void): Queue {
  let waiting: Request[] = []
  let added = 0
  /** The keys that are held, and the requests about them. */
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
    const isTaken = !isHeld(request) && !isLate(request, nowMs)
    return { firsts: isTaken ? [request] : [], untilMs: request.dueMs }
  }

  function isHeld(request: Request): boolean {
    const line = held.size > 0 ? held.get(request.key) : undefined
    line?.push(request)
    return line !== undefined
  }

  function take(nowMs: number, most: number): Taken {
    if (waiting.length === 1) return takeOne(nowMs)
    const lasts = new Map<string, Request>()
    const lastOfRow = new Map<string, Request>()
    const sets = new Map<string, RuleSet>()
    const firsts: Request[] = []
    const isLatest = (last: Request, rows: readonly RequestRow[] = []) =>
      rows.every(({ name }) => lastOfRow.get(name) === last)
    let untilMs = Number.POSITIVE_INFINITY
    let taken = 0
    for (; taken < waiting.length && taken < most; taken += 1) {
      const request = waiting[taken]
      const last = lasts.get(request.key)
      if (last && last.set !== request.set) break
      if (request.rows && !fitsIn(sets, request.rows)) break
      if (isHeld(request) || isLate(request, nowMs)) continue
      // Behind others that share one of its rows it is a first again, so that all keep their order.
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
      join(requests.filter((request) => !isHeld(request)))
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

/** Notes the rules of rows by name; false if one of them goes by others already. */
function fitsIn(sets: Map<string, RuleSet>, rows: readonly RequestRow[]): boolean {
  if (rows.some(({ name, set }) => (sets.get(name) ?? set) !== set)) return false
  for (const { name, set } of rows) sets.set(name, set)
  return true
}

/** requestsOf are all requests about one key, from the first on. */
export function requestsOf(first: Request): Request[] {
  const requests: Request[] = []
  for (let one: Request | undefined = first; one; one = one.next) requests.push(one)
  return requests
}
