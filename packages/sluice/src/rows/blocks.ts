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
  let hand = untilUs.keys()
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
      // No timers: every new one looks at two others, going round, and drops those that have ended.
      for (let looked = 0; looked < 2; looked += 1) {
        const next = hand.next()
        if (next.done) hand = untilUs.keys()
        else if (untilUs.get(next.value)! <= nowUs) untilUs.delete(next.value)
      }
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
      hand = untilUs.keys()
      blocks.size = 0
    },
  }
  return blocks
}
