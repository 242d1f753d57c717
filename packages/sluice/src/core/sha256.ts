/** The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
// biome-ignore format: a table
const ROUNDS = new Int32Array([
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
])

/** The first 32 bits of the fractional parts of the square roots of the first 8 primes. */
// biome-ignore format: a table
const START = [
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
]

/**
 * sha256 returns the SHA-256 of a text's UTF-16 units, big-endian, in 64 hexadecimal digits.
 * Hashing units instead of UTF-8 distinguishes lone surrogates. It is for runtimes without
 * `node:crypto`, since Web Crypto has only an asynchronous hash.
 */
export function sha256(text: string): string {
  const state = new Int32Array(START)
  const words = new Int32Array(64)
  const { length } = text
  // One unit for the end marker, and four for the length.
  const blocks = Math.ceil((length + 5) / 32)
  for (let block = 0; block < blocks; block += 1) {
    for (let i = 0; i < 16; i += 1) {
      const at = block * 32 + i * 2
      words[i] = (unitAt(text, at) << 16) | unitAt(text, at + 1)
    }
    if (block === blocks - 1) {
      words[14] = Math.floor(length / 2 ** 28)
      words[15] = length << 4
    }
    mix(state, words)
  }
  return Array.from(state, (word) => (word >>> 0).toString(16).padStart(8, '0')).join('')
}

/** Returns a unit of the text, or of its padding: a 1 bit and then 0 bits. */
function unitAt(text: string, at: number): number {
  if (at < text.length) return text.charCodeAt(at)
  return at === text.length ? 0x8000 : 0
}

function mix(state: Int32Array, words: Int32Array): void {
  for (let i = 16; i < 64; i += 1) {
    const early = words[i - 15]
    const late = words[i - 2]
    const sigma0 = turn(early, 7) ^ turn(early, 18) ^ (early >>> 3)
    const sigma1 = turn(late, 17) ^ turn(late, 19) ^ (late >>> 10)
    words[i] = words[i - 16] + sigma0 + words[i - 7] + sigma1
  }
  let [a, b, c, d, e, f, g, h] = state
  for (let i = 0; i < 64; i += 1) {
    const sum1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)
    const chosen = (e & f) ^ (~e & g)
    const first = (h + sum1 + chosen + ROUNDS[i] + words[i]) | 0
    const sum0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)
    const majority = (a & b) ^ (a & c) ^ (b & c)
    h = g
    g = f
    f = e
    e = (d + first) | 0
    d = c
    c = b
    b = a
    a = (first + sum0 + majority) | 0
  }
  const mixed = [a, b, c, d, e, f, g, h]
  for (let i = 0; i < 8; i += 1) state[i] += mixed[i]
}

function turn(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits))
}
