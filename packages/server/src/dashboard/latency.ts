import type { LiveLatency } from './live-event.ts'

/** Latency gathers durations until they are taken. */
export interface Latency {
  add(seconds: number): void
  /** The durations since the last call; null for none. */
  take(): LiveLatency | null
}

/** Four buckets per octave, from 1 µs to 16 s: an upper bound is at most 2^(1/4) too high. */
const PER_OCTAVE = 4
const BUCKETS = 24 * PER_OCTAVE + 1

/** createLatency counts durations in buckets that grow by 19 %, so its memory is fixed. */
export function createLatency(): Latency {
  const buckets = new Uint32Array(BUCKETS)
  let count = 0
  let most = 0

  /** The upper bound of the bucket of the `rank`th smallest duration, at most the largest one. */
  function atRank(rank: number): number {
    let seen = 0
    let at = 0
    while (at < BUCKETS - 1) {
      seen += buckets[at]
      if (seen >= rank) break
      at += 1
    }
    return Math.min(2 ** (at / PER_OCTAVE) / 1_000, most * 1_000)
  }

  return {
    add(seconds) {
      const bucket = Math.ceil(PER_OCTAVE * Math.log2(seconds * 1_000_000))
      buckets[bucket > 0 ? Math.min(bucket, BUCKETS - 1) : 0] += 1
      count += 1
      if (seconds > most) most = seconds
    },
    take() {
      if (count === 0) return null
      const p50Ms = atRank(Math.ceil(count * 0.5))
      const p99Ms = atRank(Math.ceil(count * 0.99))
      const latency = { count, p50Ms, p99Ms, mostMs: most * 1_000 }
      buckets.fill(0)
      count = 0
      most = 0
      return latency
    },
  }
}
