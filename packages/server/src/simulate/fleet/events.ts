/** Event is something that is due at a moment, in microseconds. */
export interface Event {
  readonly us: number
  readonly turn: number
  task: () => void
}

/** Events gives what is due next; of what is due at the same moment, what was added first. */
export interface Events {
  add(us: number, task: () => void): Event
  next(): Event | undefined
}

/** createEvents keeps events in a binary heap. */
export function createEvents(): Events {
  const heap: Event[] = []
  let turns = 0

  return {
    add(us, task) {
      turns += 1
      const event = { us, turn: turns, task }
      let at = heap.length
      while (at > 0) {
        const above = (at - 1) >> 1
        if (!isBefore(event, heap[above])) break
        heap[at] = heap[above]
        at = above
      }
      heap[at] = event
      return event
    },
    next() {
      const first = heap[0]
      const last = heap.pop()
      if (last === undefined || last === first) return first
      let at = 0
      for (;;) {
        let below = 2 * at + 1
        if (below + 1 < heap.length && isBefore(heap[below + 1], heap[below])) below += 1
        if (below >= heap.length || !isBefore(heap[below], last)) break
        heap[at] = heap[below]
        at = below
      }
      heap[at] = last
      return first
    },
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.us < b.us || (a.us === b.us && a.turn < b.turn)
}
