interface NodeProcess {
  readonly versions?: { readonly node?: string }
  hrtime(): [seconds: number, nanoseconds: number]
}

/**
 * createSystemTime returns a function that reads the system's time in whole microseconds since 1970
 * and never goes backwards. It selects its time source at the first reading, not before: edge
 * runtimes have no time while modules load, and test runners may install fake timers later.
 *
 * It follows fake timers while they are installed. When they are removed, it continues in real time
 * from its last instant. It detects them by the identity of `Date.now` and `setTimeout`, two
 * comparisons per reading; comparing `performance` and `process.hrtime` would cost four times as
 * much.
 */
export function createSystemTime(): () => number {
  // Identities at the real source; undefined before the first reading and while time is fake.
  let dateNow: unknown
  let timeout: unknown
  let tick: NodeProcess['hrtime']
  let zeroUs = 0
  // State of the fake source.
  let lastUs = 0
  let shiftUs = 0

  function real(): number {
    const time = tick()
    // `| 0` floors it, and lets V8 divide as integers.
    return time[0] * 1_000_000 + zeroUs + ((time[1] / 1_000) | 0)
  }

  /** Reads the time if the source may have changed since the last reading. */
  function elsewhere(): number {
    if (dateNow !== undefined) {
      lastUs = real()
      shiftUs = 0
      dateNow = undefined
    }
    const fakeUs = readFake()
    if (fakeUs !== undefined) {
      shiftUs = Math.max(shiftUs, lastUs - fakeUs)
      lastUs = fakeUs + shiftUs
      return lastUs
    }
    dateNow = Date.now
    timeout = setTimeout
    tick = tickOf((globalThis as { process?: NodeProcess }).process)
    zeroUs = Math.round(performance.timeOrigin * 1_000 - zeroOf(tick))
    if (lastUs > 0) zeroUs += lastUs - real()
    return real()
  }

  return () => (Date.now !== dateNow || setTimeout !== timeout ? elsewhere() : real())
}

/** Returns the time of fake timers if they are installed; else undefined. */
function readFake(): number | undefined {
  const isDateFake = !/\[native code\]/.test(Function.prototype.toString.call(Date.now))
  // Fake timers replace the object as a whole.
  const isPerformanceFake = Object.prototype.toString.call(performance) !== '[object Performance]'
  if (isDateFake && isPerformanceFake) {
    // Only Date follows setSystemTime(), and only performance has fractions of a millisecond.
    return Date.now() * 1_000 + Math.round((performance.now() % 1) * 1_000)
  }
  if (isDateFake) return Math.round(Date.now() * 1_000)
  if (!isPerformanceFake) return undefined
  return Math.round((performance.timeOrigin + performance.now()) * 1_000)
}

/** Returns the clock of performance.now() in a form that is cheaper to read in Node. */
function tickOf(process: NodeProcess | undefined): NodeProcess['hrtime'] {
  if (process?.versions?.node) return process.hrtime
  return () => {
    const ms = performance.now()
    const seconds = Math.floor(ms / 1_000)
    return [seconds, (ms - seconds * 1_000) * 1_000_000]
  }
}

/** Returns the value of `tick` at performance.now() = 0, at most slightly too small. */
function zeroOf(tick: NodeProcess['hrtime']): number {
  let zeroUs = Number.NEGATIVE_INFINITY
  for (let i = 0; i < 10; i += 1) {
    const [seconds, nanoseconds] = tick()
    zeroUs = Math.max(zeroUs, seconds * 1_000_000 + nanoseconds / 1_000 - performance.now() * 1_000)
  }
  return zeroUs
}
