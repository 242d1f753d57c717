/** Random gives the same numbers for the same seed. */
export interface Random {
  /** From 0 to 1, without 1. */
  fraction(): number
  /** A whole number from 0 to `below` − 1. */
  below(below: number): number
}

/** createRandom counts in steps of an odd constant and mixes the bits of each count. */
export function createRandom(seed: number): Random {
  let count = seed >>> 0
  function fraction(): number {
    count = (count + 0x9e3779b9) >>> 0
    let bits = Math.imul(count ^ (count >>> 16), 0x21f0aaad)
    bits = Math.imul(bits ^ (bits >>> 15), 0x735a2d97)
    return ((bits ^ (bits >>> 15)) >>> 0) / 2 ** 32
  }
  return { fraction, below: (below) => Math.floor(fraction() * below) }
}
