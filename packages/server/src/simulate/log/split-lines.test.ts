import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLineSplitter } from './split-lines.ts'

function split(chunks: readonly Buffer[], maxLineBytes?: number) {
  const lines: [number, string][] = []
  const broken: [number, string][] = []
  const splitter = createLineSplitter(
    {
      line: (text, number) => void lines.push([number, text]),
      broken: (number, reason) => void broken.push([number, reason]),
    },
    maxLineBytes,
  )
  for (const chunk of chunks) splitter.feed(chunk)
  splitter.end()
  return { lines, broken }
}

/** Cuts a text at positions given as shares of its length. */
function cut(text: Buffer, shares: readonly number[]): Buffer[] {
  const cuts = shares.map((share) => Math.floor(share * text.length)).sort((a, b) => a - b)
  return [...cuts, text.length].map((end, i) => text.subarray(cuts[i - 1] ?? 0, end))
}

describe('lines', () => {
  it('end in a newline, with or without a return, and the last needs none', () =>
    expect(split([Buffer.from('a\r\nb\n\nc')])).toEqual({
      lines: [
        [1, 'a'],
        [2, 'b'],
        [3, ''],
        [4, 'c'],
      ],
      broken: [],
    }))

  it('begin after a byte order mark', () =>
    expect(split([Buffer.from('\ufeffa\n')]).lines).toEqual([[1, 'a']]))

  it('are not buffered when they are too long, however they are cut', () => {
    const text = Buffer.from(`ab\n${'x'.repeat(50)}\ncd\n${'y'.repeat(50)}`)
    const shares = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 10 })
    fc.assert(
      fc.property(shares, (at) => {
        const { lines, broken } = split(cut(text, at), 20)
        expect(lines).toEqual([
          [1, 'ab'],
          [3, 'cd'],
        ])
        expect(broken).toEqual([
          [2, 'it is longer than 20 bytes'],
          [4, 'it is longer than 20 bytes'],
        ])
      }),
    )
  })

  it('that are not UTF-8 are reported, and the others of their block are read', () => {
    const text = Buffer.concat([
      Buffer.from('é\n'),
      Buffer.of(0xff, 0xfe, 10),
      Buffer.from('ü\0\n'),
    ])
    expect(split([text])).toEqual({
      lines: [
        [1, 'é'],
        [3, 'ü\0'],
      ],
      broken: [[2, 'it is not UTF-8']],
    })
  })

  it('are the same however the input is cut', () => {
    const line = fc.string({ unit: 'binary', maxLength: 12 }).map((s) => s.replace(/[\r\n]/g, ''))
    const shares = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 10 })
    fc.assert(
      fc.property(fc.array(line), shares, (lines, at) => {
        const wanted = lines.map((text) => text.replace(/^\ufeff/, ''))
        const text = Buffer.from(wanted.map((each) => `${each}\n`).join(''))
        expect(split(cut(text, at)).lines.map(([, each]) => each)).toEqual(wanted)
      }),
    )
  })
})
