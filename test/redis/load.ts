/** startLoad makes calls at a steady rate, and waits for none of them: an open loop. */
export function startLoad(perSecond: number, call: () => void): () => void {
  const startMs = performance.now()
  let made = 0
  const timer = setInterval(() => {
    const due = ((performance.now() - startMs) * perSecond) / 1_000
    for (; made < due; made += 1) call()
  }, 1)
  return () => clearInterval(timer)
}

/** LagMeter knows for how long the event loop was kept from its timers at most. */
export interface LagMeter {
  /** The longest since it was started, in milliseconds; what lasts until now counts. */
  longestMs(): number
  stop(): void
}

const TICK_MS = 2

/** startLagMeter looks at the time again and again, and at how late it does. */
export function startLagMeter(): LagMeter {
  let lastMs = performance.now()
  let longestMs = 0
  const look = () => {
    const nowMs = performance.now()
    longestMs = Math.max(longestMs, nowMs - lastMs - TICK_MS)
    lastMs = nowMs
  }
  const timer = setInterval(look, TICK_MS)
  return {
    longestMs() {
      look()
      return longestMs
    },
    stop: () => clearInterval(timer),
  }
}
