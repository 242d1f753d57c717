import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { sha256 } from './sha256.ts'

/** Computes the hash with the platform's crypto. */
function known(text: string): string {
  return createHash('sha256').update(Buffer.from(text, 'utf16le').swap16()).digest('hex')
}

describe('sha256', () => {
  it('equals the platform’s hash for every length up to two blocks', () => {
    const long = 'añ€\ud800😀\u0000x'.repeat(20)
    const wrong: number[] = []
    for (let length = 0; length <= 130; length += 1) {
      const text = long.slice(0, length)
      if (sha256(text) !== known(text)) wrong.push(length)
    }
    expect(wrong).toEqual([])
  })

  it('equals the platform’s hash for any text, lone surrogates included', () =>
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 2_000 }),
        (units) => sha256(String.fromCharCode(...units)) === known(String.fromCharCode(...units)),
      ),
      { numRuns: 300 },
    ))

  it('distinguishes lone surrogates, unlike UTF-8', () => {
    const tail = 'x'.repeat(2_000)
    const all = ['\ud800', '\ud801', '\udfff', '\ufffd'].map((first) => sha256(first + tail))
    expect(new Set(all).size).toBe(4)
  })
})
