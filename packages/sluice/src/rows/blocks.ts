/** Blocks holds the blocked keys of one limiter. It never evicts them. */
export interface Blocks {
  /** The number of blocks, including ended ones not yet removed. */
  size: number
  /** Returns for how many microseconds the key is still blocked; 0 if it is not. */
  leftUs(key: string, nowUs: number): number
  set(key: string, untilUs: number, nowUs: number): void
  delete(key: string): void
  keys(): Iterable<string>
  clear(): void
}

/** createBlocks creates an empty set of blocks. */
export function createBlocks(): Blocks {
  const untilUs = new Map<string, number>()
  let hand = untilUs.keys()
  // A plain field: an accessor would switch the object to V8's slow dictionary mode.
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
      // No timers: each new block checks the next two in turn and drops those that have ended.
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
