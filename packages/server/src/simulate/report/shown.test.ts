import { describe, expect, it } from 'vitest'
import { bytes, counted, part, percent, plain, span } from './shown.ts'

it.each([
  [0, '0 %'],
  [1e-9, '< 0.001 %'],
  [0.00001, '0.001 %'],
  [0.0123456, '1.23 %'],
  [0.99996, '> 99.9 %'],
  [1, '100 %'],
])('the share %d is %s', (share, text) => expect(percent(share)).toBe(text))

it.each([
  [0, '0 clients'],
  [1, '1 client'],
  [1_234, '1,234 clients'],
])('%d are %s', (value, text) => expect(counted(value, 'client')).toBe(text))

it('a part of 0 has no share', () => expect(part(0, 0)).toBe('0'))

it.each([
  [0, '0 ms'],
  [12, '12 ms'],
  [60_000, '1 m'],
  [90_061_001, '1 d 1 h'],
  [3_600_500, '1 h'],
])('%d ms is %s', (ms, text) => expect(span(ms)).toBe(text))

it.each([
  [0, '0 B'],
  [1_023, '1023 B'],
  [1.5 * 2 ** 30, '1.5 GiB'],
])('%d bytes are %s', (value, text) => expect(bytes(value)).toBe(text))

describe('a text from outside', () => {
  it.each([
    ['a\u001b[31m\n', 'a\\u{1b}[31m\\u{a}'],
    ['\u202eevil', '\\u{202e}evil'],
    ['\ud800', '\\u{d800}'],
    ['Zoë 😀', 'Zoë 😀'],
  ])('%j is shown as %s', (text, shown) => expect(plain(text)).toBe(shown))

  it('is cut between characters, not within one', () => {
    expect(plain(`${'x'.repeat(58)}😀yy`)).toBe(`${'x'.repeat(58)}…`)
    expect(plain(`${'x'.repeat(57)}😀yy`)).toBe(`${'x'.repeat(57)}😀…`)
  })

  it('is cut when it is long', () => expect(plain('x'.repeat(1_000))).toHaveLength(60))
})
