import { describe, expect, it } from 'vitest'
import { createFingerprint, newSecret } from './fingerprint.ts'

const printOf = (print: ReturnType<typeof createFingerprint>, key: string) => {
  print.hash(key)
  return `${print.low} ${print.high}`
}

describe('a fingerprint', () => {
  it('is the same for the same key, however the string was built', () => {
    const print = createFingerprint(newSecret())
    const built = ['us', 'er:', 4, 2].join('')
    expect(printOf(print, built)).toBe(printOf(print, 'user:42'))
  })

  it('is the same under the same secret', () => {
    const secret = newSecret()
    const [one, two] = [createFingerprint(secret), createFingerprint(secret)]
    expect(printOf(one, 'user:42')).toBe(printOf(two, 'user:42'))
  })

  it('differs for keys that differ in one unit, in length or in zeros', () => {
    const print = createFingerprint(newSecret())
    const keys = [
      'a',
      'b',
      'aa',
      '\u0000',
      '\u0000\u0000',
      'a\u0000',
      '\u0001\u0000',
      '\ud800',
      '\udc00',
      'é',
      'e\u0301',
    ]
    for (let length = 1; length <= 1_024; length += 1) keys.push('x'.repeat(length))
    for (let at = 0; at < 1_024; at += 1) keys.push(`${'x'.repeat(at)}y${'x'.repeat(1_023 - at)}`)
    for (let i = 0; i < 200_000; i += 1) keys.push(`user:${i}`)
    expect(new Set(keys.map((key) => printOf(print, key))).size).toBe(new Set(keys).size)
  })

  it('depends on a secret that differs from store to store', () => {
    const [one, two] = [createFingerprint(newSecret()), createFingerprint(newSecret())]
    const same = Array.from({ length: 100 }, (_, i) => `key ${i}`).filter(
      (key) => printOf(one, key) === printOf(two, key),
    )
    expect(same).toEqual([])
  })

  it('spreads keys evenly, sequential ones too', () => {
    const print = createFingerprint(newSecret())
    const counts = { low: new Uint32Array(64), high: new Uint32Array(64) }
    const total = 64_000
    for (let i = 0; i < total; i += 1) {
      print.hash(`user:${i}`)
      counts.low[print.low >>> 26] += 1
      counts.high[(print.high >>> 4) & 63] += 1
    }
    // 1,000 expected in each bin, ± six standard deviations.
    for (const each of [counts.low, counts.high]) {
      expect(Math.max(...each)).toBeLessThan(1_190)
      expect(Math.min(...each)).toBeGreaterThan(810)
    }
  })
})
