/** Blocks are the keys of one limiter that are refused for a while. They are never evicted. */
export interface Blocks {
  /** How many are kept, those that have just ended included. */
  size: number
  /** Microseconds the key is still blocked; 0 when it is not. */
  leftUs(key: string, nowUs: number): number
  set(key: string, untilUs: number, nowUs: number): void
  delete(key: string): void
  keys(): Iterable<string>
  clear(): void
}

export function createBlocks(): Blocks {
  const untilUs = new Map<string, number>()
  // A plain field: an accessor would turn the object into a slow one.
  const blocks: Blocks = {
    size: 0,
    leftUs(key, nowUs) {
      const until = untilUs.get(key)
      if (until === undefined) return 0
      if (until > nowUs) return until - nowUs
      blocks.delete(key)
      return 0
    },
    set(key, until, nowUs) {
      // No timers: those set longest ago are looked at, and go if they have ended.
      for (const [other, otherUntil] of untilUs) {
        if (otherUntil > nowUs) break
        untilUs.delete(other)
      }
      untilUs.delete(key)
      untilUs.set(key, until)
      blocks.size = untilUs.size
    },
    delete(key) {
      untilUs.delete(key)
      blocks.size = untilUs.size
    },
    keys: () => untilUs.keys(),
    clear() {
      untilUs.clear()
      blocks.size = 0
    },
  }
  return blocks
}
