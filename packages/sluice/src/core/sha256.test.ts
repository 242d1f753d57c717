import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { sha256 } from './sha256.ts'

/** What the platform says. */
function known(text: string): string {
  return createHash('sha256').update(Buffer.from(text, 'utf16le').swap16()).digest('hex')
}

describe('sha256', () => {
  it('is what the platform computes, for every length around two blocks', () => {
    const long = 'añ€\ud800😀\u0000x'.repeat(20)
    const wrong: number[] = []
    for (let length = 0; length <= 130; length += 1) {
      const text = long.slice(0, length)
      if (sha256(text) !== known(text)) wrong.push(length)
    }
    expect(wrong).toEqual([])
  })

  it('is what the platform computes, for any text, lone surrogates included', () =>
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 2_000 }),
        (units) => sha256(String.fromCharCode(...units)) === known(String.fromCharCode(...units)),
      ),
      { numRuns: 300 },
    ))

  it('tells lone surrogates apart, which UTF-8 cannot', () => {
    const tail = 'x'.repeat(2_000)
    const all = ['\ud800', '\ud801', '\udfff', '\ufffd'].map((first) => sha256(first + tail))
    expect(new Set(all).size).toBe(4)
  })
})
