/** Random yields the same numbers for the same seed, on every machine. */
export interface Random {
  /** A whole number from 0 to `below` − 1. */
  below(below: number): number
  /** One element of a list. */
  pick<T>(from: readonly T[]): T
}

/** seededRandom steps a 32-bit linear congruential generator and mixes its high bits down. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  function next(): number {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    let mixed = state ^ (state >>> 15)
    mixed = Math.imul(mixed, 0x2c1b3c6d)
    mixed ^= mixed >>> 12
    mixed = Math.imul(mixed, 0x297a2d39)
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32
  }
  return {
    below: (below) => Math.floor(next() * below),
    pick: (from) => from[Math.floor(next() * from.length)],
  }
}
