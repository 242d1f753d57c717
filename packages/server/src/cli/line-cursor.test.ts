import { expect, it } from 'vitest'
import { createLineCursor } from './line-cursor.ts'

/** Every line of the chunks as [line number, ...words]. */
function read(chunks: readonly string[], maxLineBytes?: number): (string | number)[][] {
  const cursor = createLineCursor(maxLineBytes)
  const lines: (string | number)[][] = []
  const drain = () => {
    while (cursor.nextLine()) {
      const line: (string | number)[] = [cursor.lineNumber()]
      while (cursor.nextWord()) line.push(cursor.word())
      lines.push(line)
    }
  }
  for (const chunk of chunks) {
    cursor.feed(Buffer.from(chunk, 'latin1'))
    drain()
  }
  cursor.finish()
  drain()
  return lines
}

it('numbers lines from 1 and counts blank ones', () => {
  expect(read(['a\n\n b\n'])).toEqual([[1, 'a'], [2], [3, 'b']])
})

it('separates words at spaces and tabs and at nothing else', () => {
  expect(read(['\t a  b\tc \v\f\xa0\0\n'])).toEqual([[1, 'a', 'b', 'c', '\v\f\xa0\0']])
})

it('takes one carriage return off the end of a line and leaves the others', () => {
  expect(read(['a\r\n\r\nb\rc\n\rd\r\r\n'])).toEqual([[1, 'a'], [2], [3, 'b\rc'], [4, '\rd\r']])
})

it('finds a last line without a newline, and no line after a last newline', () => {
  expect(read(['a\nb'])).toEqual([
    [1, 'a'],
    [2, 'b'],
  ])
  expect(read(['a\n'])).toEqual([[1, 'a']])
  expect(read([])).toEqual([])
  expect(read(['', ''])).toEqual([])
})

it('joins a line from many chunks, empty ones included', () => {
  expect(read(['one t', '', 'w', 'o', '\r', '\n', 'three'])).toEqual([
    [1, 'one', 'two'],
    [2, 'three'],
  ])
})

it('compares a word without decoding it', () => {
  const cursor = createLineCursor()
  cursor.feed(Buffer.from('request requests reques Request\n'))
  expect(cursor.nextLine()).toBe(true)
  const same: boolean[] = []
  while (cursor.nextWord()) same.push(cursor.wordIs(Buffer.from('request')))
  expect(same).toEqual([true, false, false, false])
})

it('refuses a line that goes on past the limit, naming the line', () => {
  expect(read(['a\n1234', '5678', '\n'], 8)).toEqual([
    [1, 'a'],
    [2, '12345678'],
  ])
  expect(() => read(['a\n1234', '56789', '\n'], 8)).toThrow(/^line 2: .* at most 8 bytes/)
})
