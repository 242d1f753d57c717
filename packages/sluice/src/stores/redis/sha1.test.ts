import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { sha1 } from './sha1.ts'

it('is what node:crypto computes, for every length around a block and for UTF-8', () => {
  const texts = Array.from({ length: 200 }, (_, length) => 'x'.repeat(length))
  for (const text of [...texts, 'ä€😀'.repeat(50), 'script '.repeat(3_000)]) {
    expect(sha1(text)).toBe(createHash('sha1').update(text).digest('hex'))
  }
})
