/**
 * sha1 returns the SHA-1 of a text in UTF-8, in 40 hexadecimal digits: the name by which Redis
 * knows a script. Web Crypto would answer later, and `node:crypto` is not everywhere.
 */
export function sha1(text: string): string {
  const bytes = new TextEncoder().encode(text)
  const blocks = new DataView(new ArrayBuffer(64 * Math.ceil((bytes.length + 9) / 64)))
  for (const [i, byte] of bytes.entries()) blocks.setUint8(i, byte)
  blocks.setUint8(bytes.length, 0x80)
  // Scripts have fewer than 2^29 bytes, so the upper half of their length in bits is 0.
  blocks.setUint32(blocks.byteLength - 4, 8 * bytes.length)
  const state = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0]
  const words = new Int32Array(80)
  for (let at = 0; at < blocks.byteLength; at += 64) {
    for (let i = 0; i < 80; i += 1) {
      const mixed = words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16]
      words[i] = i < 16 ? blocks.getInt32(at + 4 * i) : turn(mixed, 1)
    }
    mix(state, words)
  }
  return state.map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('')
}

function mix(state: number[], words: Int32Array): void {
  let [a, b, c, d, e] = state
  for (let i = 0; i < 80; i += 1) {
    const next = turn(a, 5) + chosen(i, b, c, d) + e + words[i]
    e = d
    d = c
    c = turn(b, 30)
    b = a
    a = next | 0
  }
  for (const [i, word] of [a, b, c, d, e].entries()) state[i] = (state[i] + word) | 0
}

/** Returns the function of a round, and its constant. */
function chosen(i: number, b: number, c: number, d: number): number {
  if (i < 20) return ((b & c) | (~b & d)) + 0x5a827999
  if (i < 40) return (b ^ c ^ d) + 0x6ed9eba1
  if (i < 60) return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
  return (b ^ c ^ d) + 0xca62c1d6
}

function turn(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits))
}
