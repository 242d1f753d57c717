import type { Clock } from 'sluice'

/** VirtualClock is a clock that moves only when it is set. */
export interface VirtualClock extends Clock {
  /** Moves the clock forward; earlier times are ignored. */
  set(us: number): void
}

/** createVirtualClock makes a clock that starts at 1970. Its `sleep` rejects. */
export function createVirtualClock(): VirtualClock {
  let now = 0
  return {
    nowUs: () => now,
    sleep: () => Promise.reject(new Error('the clock of a simulation does not sleep')),
    set(us) {
      if (us > now) now = us
    },
  }
}
