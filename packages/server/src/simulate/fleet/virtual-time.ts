import { createEventQueue } from '../scenario/event-queue.ts'

/** When the virtual clock begins: 2030-01-01, in microseconds. */
const ORIGIN_US = Date.UTC(2030, 0) * 1_000

/** What is due; cancelled, it does nothing. */
interface Event {
  task: () => void
}

/** VirtualTime is a clock that stands still until the next thing is due, and then jumps there. */
export interface VirtualTime {
  /** Whole microseconds since the beginning. */
  nowUs(): number
  /** The same, since 1970. */
  epochUs(): number
  /** Does something at that moment, or now if it has passed. */
  at(us: number, task: () => void): void
  /** Goes back to the beginning, and forgets what was to be done. */
  restart(): void
  /** Does what is due, one after the other, until `isOver` or nothing is left. */
  run(isOver: () => boolean): Promise<void>
}

/**
 * installVirtualTime puts virtual time in the place of this process's timers and clock, for good.
 * The library keeps its own hold of some of them from the moment it is loaded, so this comes first.
 */
export function installVirtualTime(): VirtualTime {
  let events = createEventQueue<Event>()
  // The last real one: between two turns all promises that can settle have settled.
  const nextTurn = setImmediate
  let nowUs = 0

  function at(us: number, task: () => void) {
    const event: Event = { task }
    events.add(Math.max(nowUs, us), event)
    return event
  }

  /** As Node does it: whole milliseconds, at least one. */
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
