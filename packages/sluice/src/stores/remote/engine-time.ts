/**
 * EngineTime estimates the engine's clock from its replies. The engine read the instant of a reply
 * between the moments the call was sent and the reply arrived. The estimate is the slowest clock
 * that fits all replies, so that a deadline is never too late.
 */
export interface EngineTime {
  /** Records a reply that arrived now: the engine's instant, and when its call was sent. */
  note(engineUs: number, sentMs: number): void
  /** Converts a moment of `performance.now()` to the engine's clock; 0 before the first reply. */
  at(ms: number): number
}

/** createEngineTime creates an estimate, which starts from `guess` until its own first reply. */
export function createEngineTime(guess?: EngineTime): EngineTime {
  let aheadUs = Number.NaN
  return {
    note(engineUs, sentMs) {
      const least = engineUs - performance.now() * 1_000
      const most = engineUs - sentMs * 1_000
      if (!(aheadUs >= least)) aheadUs = least
      if (aheadUs > most) aheadUs = most
    },
    at: (ms) => (Number.isNaN(aheadUs) ? (guess?.at(ms) ?? 0) : Math.floor(ms * 1_000 + aheadUs)),
  }
}
