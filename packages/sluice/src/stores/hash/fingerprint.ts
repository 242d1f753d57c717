/**
 * Fingerprint is a keyed 64-bit hash that identifies a key in stores that do not keep keys. The
 * secret is random, so an attacker can neither construct two keys with one fingerprint nor many
 * keys that collide in one part of a hash table.
 */
export interface Fingerprint {
  /** The two 32-bit halves of the fingerprint of the last key. */
  low: number
  high: number
  hash(key: string): void
}

/** newSecret draws a random secret for fingerprints. */
export function newSecret(): Int32Array {
  return crypto.getRandomValues(new Int32Array(2))
}

/**
 * createFingerprint creates a hasher. It computes HalfSipHash-1-3 over the key's UTF-16 units, two
 * per word, and takes both output words from the final state. Without `secret` it draws one at the
 * first key, since Cloudflare Workers provide no random values while modules load.
 */
export function createFingerprint(secret?: Int32Array): Fingerprint {
  let drawn = secret
  function hash(key: string): void {
    if (drawn === undefined) drawn = newSecret()
    let v0 = drawn[0]
    let v1 = drawn[1]
    let v2 = v0 ^ 0x6c796765
    let v3 = v1 ^ 0x74656462
    const { length } = key
    const last = length & ~1
    for (let i = 0; i < last; i += 2) {
      const word = key.charCodeAt(i) | (key.charCodeAt(i + 1) << 16)
      v3 ^= word
      v0 = (v0 + v1) | 0
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
      v0 = (v0 << 16) | (v0 >>> 16)
      v2 = (v2 + v3) | 0
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
      v0 = (v0 + v3) | 0
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
      v2 = (v2 + v1) | 0
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
      v2 = (v2 << 16) | (v2 >>> 16)
      v0 ^= word
    }
    // One word with the odd unit, if any, and the length; then three words of 0. The steps are
    // repeated
    // here because the loop above is a sixth faster without a condition.
    let word = (last < length ? key.charCodeAt(last) : 0) | (length << 16)
    for (let left = 4; left > 0; left -= 1) {
      v3 ^= word
      v0 = (v0 + v1) | 0
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
      v0 = (v0 << 16) | (v0 >>> 16)
      v2 = (v2 + v3) | 0
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
      v0 = (v0 + v3) | 0
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
      v2 = (v2 + v1) | 0
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
      v2 = (v2 << 16) | (v2 >>> 16)
      v0 ^= word
      if (left === 4) v2 ^= 0xee
      word = 0
    }
    print.low = v1 ^ v3
    print.high = v0 ^ v2
  }

  const print: Fingerprint = { low: 0, high: 0, hash }
  return print
}
