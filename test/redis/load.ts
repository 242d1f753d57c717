/** startLoad makes calls at a steady rate without waiting for their results: an open loop. */
export function startLoad(perSecond: number, call: () => void): () => void {
  const startMs = performance.now()
  let made = 0
  const timer = setInterval(() => {
    const due = ((performance.now() - startMs) * perSecond) / 1_000
    for (; made < due; made += 1) call()
  }, 1)
  return () => clearInterval(timer)
}

/** LagMeter measures the lag of the event loop. */
export interface LagMeter {
  /** Returns the longest lag since the start in milliseconds, including a present one. */
  longestMs(): number
  stop(): void
}

const TICK_MS = 2

/** startLagMeter starts a repeating timer, and measures how late it fires. */
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
