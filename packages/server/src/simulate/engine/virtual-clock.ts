import type { Clock } from 'sluice'

/** VirtualClock stands where it is set. */
export interface VirtualClock extends Clock {
  /** Moves it on; to an earlier time it does not go. */
  set(us: number): void
}

/** createVirtualClock makes a clock that stands at 1970. Nobody may sleep by it. */
export function createVirtualClock(): VirtualClock {
  let now = 0
  return {
    nowUs: () => now,
    sleep: () => Promise.reject(new Error('a simulation waits for nobody')),
    set(us) {
      if (us > now) now = us
    },
  }
}
