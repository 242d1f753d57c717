/** Failures in a row after which nobody asks the store any more. */
const MOST_FAILURES = 5

/** How long after a failure the store is asked again, by one call. */
const PROBE_AFTER_MS = 100

/** Pass lets a call go to the store; its outcome must be told. */
export type Pass = 'call' | 'probe'

/** Breaker keeps calls away from a store that fails, but for one now and then. */
export interface Breaker {
  /** undefined: the store is not to be asked. */
  enter(): Pass | undefined
  succeeded(pass: Pass): void
  failed(pass: Pass, error: unknown): void
}

export function createBreaker(on: { open(error: unknown): void; closed(): void }): Breaker {
  let failures = 0
  let isOpen = false
  let isProbing = false
  let probeAtMs = 0

  return {
    enter() {
      if (!isOpen) return 'call'
      if (isProbing || performance.now() < probeAtMs) return undefined
      isProbing = true
      return 'probe'
    },
    succeeded(pass) {
      if (pass === 'probe' && isOpen) {
        isOpen = false
        isProbing = false
        on.closed()
      }
      if (!isOpen) failures = 0
    },
    failed(pass, error) {
      if (pass === 'probe') isProbing = false
      else if (isOpen) return
      failures += 1
      probeAtMs = performance.now() + PROBE_AFTER_MS
      if (isOpen || failures < MOST_FAILURES) return
      isOpen = true
      on.open(error)
    },
  }
}
