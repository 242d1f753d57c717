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
  /** What a call failed with last. */
  lastError(): unknown
  succeeded(pass: Pass): void
  failed(pass: Pass, error: unknown): void
}

function createBreaker(on: { open(error: unknown): void; closed(): void }): Breaker {
  let failures = 0
  let isOpen = false
  let isProbing = false
  let probeAtMs = 0
  let last: unknown

  return {
    enter() {
      if (!isOpen) return 'call'
      if (isProbing || performance.now() < probeAtMs) return undefined
      isProbing = true
      return 'probe'
    },
    lastError: () => last,
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
      // Calls that went together fail together: that is one failure.
      if (error !== last || pass === 'probe') failures += 1
      last = error
      probeAtMs = performance.now() + PROBE_AFTER_MS
      if (isOpen || failures < MOST_FAILURES) return
      isOpen = true
      on.open(error)
    },
  }
}

/**
 * createBreakers has a breaker for each part of a store, which fail apart. It tells when the first
 * one opens, and when the last one has closed.
 */
export function createBreakers(on: {
  open(error: unknown): void
  closed(): void
}): (part: number) => Breaker {
  const breakers = new Map<number, Breaker>()
  let open = 0
  const counted = {
    open(error: unknown) {
      open += 1
      if (open === 1) on.open(error)
    },
    closed() {
      open -= 1
      if (open === 0) on.closed()
    },
  }
  return (part) => {
    let breaker = breakers.get(part)
    if (!breaker) {
      breaker = createBreaker(counted)
      breakers.set(part, breaker)
    }
    return breaker
  }
}
