import type { LogRequest } from './request.ts'

/** InOrder gives requests on in the order of their times, as far as it can. */
export interface InOrder {
  push(request: LogRequest): void
  /** Gives on what is still held. */
  flush(): void
  /** Requests that were put in order. */
  reordered(): number
  /** Requests that came after a later one was given on. They count at that one's time. */
  late(): number
}

/**
 * createInOrder holds back up to `size` requests and gives on the earliest, because logs are
 * written when requests end, not when they begin. Equal times keep their order. `size` is a power
 * of two.
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
        // Nothing that is held could come before it.
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
