/**
 * EngineTime knows the engine’s clock as far as replies tell. The instant in a reply lay between the
 * moments the call was sent and the reply came; of the clocks that fit, it takes the slowest one,
 * so that a deadline never is later than it ought to be.
 */
export interface EngineTime {
  /** A reply came in now: the instant it names, and when its call was sent. */
  note(engineUs: number, sentMs: number): void
  /** The instant of the engine’s clock at a moment of ours; 0 as long as nothing is known. */
  at(ms: number): number
}

/** createEngineTime takes another one's word for it until it has seen a reply of its own. */
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
