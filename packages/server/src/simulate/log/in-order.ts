import type { LogRequest } from './request.ts'

/** InOrder passes requests on in the order of their times, within a bounded buffer. */
export interface InOrder {
  push(request: LogRequest): void
  /** Passes on the requests that are still buffered. */
  flush(): void
  /** Requests that were reordered. */
  reordered(): number
  /** Requests that arrived after a later one was passed on. They count at that one's time. */
  late(): number
}

/**
 * createInOrder buffers up to `size` requests and passes on the earliest, because logs are written
 * when requests end, not when they begin. Equal times keep their order. `size` is a power of two.
 */
export function createInOrder(take: (request: LogRequest) => void, size = 4_096): InOrder {
  const held: LogRequest[] = new Array(size)
  const mask = size - 1
  let first = 0
  let count = 0
  let reordered = 0
  let late = 0
  let givenUs = 0

  function give(): void {
    const request = held[first & mask]
    first += 1
    count -= 1
    givenUs = request.timeUs
    take(request)
  }

  return {
    push(request) {
      if (count === size) give()
      if (request.timeUs < givenUs) {
        // No buffered request is earlier.
        late += 1
        take(request)
        return
      }
      let at = first + count
      while (at > first && held[(at - 1) & mask].timeUs > request.timeUs) {
        held[at & mask] = held[(at - 1) & mask]
        at -= 1
      }
      if (at < first + count) reordered += 1
      held[at & mask] = request
      count += 1
    },
    flush() {
      while (count > 0) give()
    },
    reordered: () => reordered,
    late: () => late,
  }
}
