import { createEventQueue } from '../scenario/event-queue.ts'

/** When the virtual clock begins: 2030-01-01, in microseconds. */
const ORIGIN_US = Date.UTC(2030, 0) * 1_000

/** A scheduled task; a cancelled one does nothing. */
interface Event {
  task: () => void
}

/** VirtualTime is a clock that jumps from one scheduled task to the next. */
export interface VirtualTime {
  /** Whole microseconds since the start. */
  nowUs(): number
  /** The same, since 1970. */
  epochUs(): number
  /** Schedules a task at that time, or now if it has passed. */
  at(us: number, task: () => void): void
  /** Goes back to the start, and drops all scheduled tasks. */
  restart(): void
  /** Runs scheduled tasks in order until `isOver` or none is left. */
  run(isOver: () => boolean): Promise<void>
}

/**
 * installVirtualTime replaces this process's timers and clock by virtual time, for good. The
 * library captures some of them when it is loaded, so call this first.
 */
export function installVirtualTime(): VirtualTime {
  let events = createEventQueue<Event>()
  // The real `setImmediate`: between two turns all promises that can settle have settled.
  const nextTurn = setImmediate
  let nowUs = 0

  function at(us: number, task: () => void) {
    const event: Event = { task }
    events.add(Math.max(nowUs, us), event)
    return event
  }

  /** As in Node: whole milliseconds, at least one. */
  function timer(task: () => void, ms = 1) {
    const handle = at(nowUs + Math.max(1, Math.trunc(ms)) * 1_000, task)
    return Object.assign(handle, { ref: () => handle, unref: () => handle })
  }

  function cancel(handle: Event | undefined) {
    if (handle) handle.task = () => {}
  }

  const time: VirtualTime = {
    nowUs: () => nowUs,
    epochUs: () => ORIGIN_US + nowUs,
    at: (us, task) => void at(us, task),
    restart() {
      events = createEventQueue()
      nowUs = 0
    },
    run: (isOver) =>
      new Promise((resolve, reject) => {
        function turn() {
          const nextUs = events.nextUs()
          if (isOver() || nextUs === Number.POSITIVE_INFINITY) return resolve()
          nowUs = nextUs
          try {
            events.next().task()
          } catch (error) {
            return reject(error)
          }
          nextTurn(turn)
        }
        nextTurn(turn)
      }),
  }
  Object.defineProperty(performance, 'timeOrigin', { value: ORIGIN_US / 1_000 })
  performance.now = () => nowUs / 1_000
  const hrtime = () => [Math.floor(nowUs / 1_000_000), (nowUs % 1_000_000) * 1_000]
  process.hrtime = Object.assign(hrtime, process.hrtime) as NodeJS.HRTime
  Object.assign(globalThis, {
    setTimeout: timer,
    clearTimeout: cancel,
    setImmediate: (task: () => void) => at(nowUs, task),
    clearImmediate: cancel,
  })
  return time
}
