/**
 * RedisTime knows Redis's clock as far as replies tell. The instant in a reply lay between the
 * moments the call was sent and the reply came; of the clocks that fit, it takes the slowest one,
 * so that a deadline never is later than it ought to be.
 */
export interface RedisTime {
  /** A reply came in now: the instant it names, and when its call was sent. */
  note(redisUs: number, sentMs: number): void
  /** The instant of Redis's clock at a moment of ours; 0 as long as nothing is known. */
  at(ms: number): number
}

/** createRedisTime takes another one's word for it until it has seen a reply of its own. */
export function createRedisTime(guess?: RedisTime): RedisTime {
  let aheadUs = Number.NaN
  return {
    note(redisUs, sentMs) {
      const least = redisUs - performance.now() * 1_000
      const most = redisUs - sentMs * 1_000
      if (!(aheadUs >= least)) aheadUs = least
      if (aheadUs > most) aheadUs = most
    },
    at: (ms) => (Number.isNaN(aheadUs) ? (guess?.at(ms) ?? 0) : Math.floor(ms * 1_000 + aheadUs)),
  }
}
