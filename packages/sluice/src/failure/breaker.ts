/** The breaker opens after this many failures in a row. */
const MOST_FAILURES = 5

/** While the breaker is open, one probe is sent this long after a failure. */
const PROBE_AFTER_MS = 100

/** Pass permits one call to the store. Its owner must report the outcome. */
export type Pass = 'call' | 'probe'

/** Breaker is a circuit breaker: it stops calls to a failing store, except for single probes. */
export interface Breaker {
  /** Returns a pass, or undefined while the breaker is open and no probe is due. */
  enter(): Pass | undefined
  /** Returns the error of the last failure. */
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
      // Calls of one trip fail with one error: count it once.
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
 * createBreakers creates one breaker per part of a store, since parts fail independently. It calls
 * `on.open` when the first one opens, and `on.closed` when the last one has closed.
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
