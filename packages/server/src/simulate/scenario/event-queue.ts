/** EventQueue returns events in the order of their times; equal times in insertion order. */
export interface EventQueue<T> {
  add(timeUs: number, event: T): void
  /** The time of the next event; Infinity if there is none. */
  nextUs(): number
  /** Removes and returns the next event; the queue must not be empty. */
  next(): T
}

interface Entry<T> {
  readonly timeUs: number
  readonly order: number
  readonly event: T
}

/** createEventQueue makes a binary heap. */
export function createEventQueue<T>(): EventQueue<T> {
  const heap: Entry<T>[] = []
  let order = 0

  return {
    add(timeUs, event) {
      order += 1
      const entry = { timeUs, order, event }
      let at = heap.length
      while (at > 0) {
        const above = (at - 1) >> 1
        if (!isBefore(entry, heap[above])) break
        heap[at] = heap[above]
        at = above
      }
      heap[at] = entry
    },
    nextUs: () => (heap.length === 0 ? Number.POSITIVE_INFINITY : heap[0].timeUs),
    next() {
      const first = heap[0]
      const last = heap.pop()!
      if (last === first) return first.event
      let at = 0
      for (;;) {
        let below = 2 * at + 1
        if (below + 1 < heap.length && isBefore(heap[below + 1], heap[below])) below += 1
        if (below >= heap.length || !isBefore(heap[below], last)) break
        heap[at] = heap[below]
        at = below
      }
      heap[at] = last
      return first.event
    },
  }
}

function isBefore<T>(a: Entry<T>, b: Entry<T>): boolean {
  return a.timeUs < b.timeUs || (a.timeUs === b.timeUs && a.order < b.order)
}
