/** EventQueue gives events back in the order of their times; equal times in the order they came. */
export interface EventQueue<T> {
  add(timeUs: number, event: T): void
  /** The time of the next one; Infinity when there is none. */
  nextUs(): number
  /** Takes out the next one, of which there is one. */
  next(): T
}

/** createEventQueue makes a heap. */
export function createEventQueue<T>(): EventQueue<T> {
  const heap: { timeUs: number; order: number; event: T }[] = []
  let order = 0

  const isBefore = (a: number, b: number) =>
    heap[a].timeUs < heap[b].timeUs ||
    (heap[a].timeUs === heap[b].timeUs && heap[a].order < heap[b].order)

  function swap(a: number, b: number): void {
    const held = heap[a]
    heap[a] = heap[b]
    heap[b] = held
  }

  return {
    add(timeUs, event) {
      order += 1
      heap.push({ timeUs, order, event })
      for (let at = heap.length - 1; at > 0; ) {
        const parent = (at - 1) >> 1
        if (!isBefore(at, parent)) break
        swap(at, parent)
        at = parent
      }
    },
    nextUs: () => (heap.length === 0 ? Number.POSITIVE_INFINITY : heap[0].timeUs),
    next() {
      const { event } = heap[0]
      const last = heap.pop()!
      if (heap.length > 0) heap[0] = last
      for (let at = 0; ; ) {
        let least = at
        for (const child of [2 * at + 1, 2 * at + 2]) {
          if (child < heap.length && isBefore(child, least)) least = child
        }
        if (least === at) return event
        swap(at, least)
        at = least
      }
    },
  }
}
