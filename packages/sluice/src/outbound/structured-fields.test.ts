import fc from 'fast-check'
import * as reference from 'structured-headers'
import { describe, expect, it } from 'vitest'
import { type BareItem, type FieldItem, parseDictionary, parseList } from './structured-fields.ts'

/** What another parser makes of a text, in our shape; it does not tell integers from decimals. */
function oursOf(value: reference.BareItem | reference.Item[]): unknown {
  if (Array.isArray(value)) return ''
  if (typeof value === 'number') return value + 0
  if (value instanceof reference.Token || value instanceof reference.DisplayString) {
    return value.toString()
  }
  if (value instanceof Date) return value.getTime() / 1_000
  if (typeof value === 'object') return Buffer.from(value as ArrayBuffer).toString('latin1')
  return value
}

const expectedItem = ([value, parameters]: reference.Item | reference.InnerList) => [
  oursOf(value),
  [...parameters].map(([key, each]) => [key, oursOf(each)]).sort(),
]

/** As the other parser has it: a date that `Date` cannot hold is NaN. */
const seen = ({ kind, value }: BareItem) => {
  if (kind === 'date') return new Date(Number(value) * 1_000).getTime() / 1_000
  return typeof value === 'number' ? value + 0 : value
}
const seenItem = (item: FieldItem) => [
  seen(item),
  [...item.parameters].map(([key, each]) => [key, seen(each)]).sort(),
]

function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

/**
 * Throws where the two parsers differ; tells whether the text is well-formed. The other one refuses
 * whatever follows a date, so a text with `@` must be read alike only if it reads it at all.
 */
function compare(text: string): boolean {
  const list = attempt(() => reference.parseList(text))
  const dictionary = attempt(() => reference.parseDictionary(text))
  const isVague = text.includes('@')
  if (list || !isVague) {
    expect(parseList(text)?.map(seenItem), text).toEqual(list?.map(expectedItem))
  }
  if (dictionary || !isVague) {
    const ours = parseDictionary(text)
    expect(ours && [...ours].map(([key, item]) => [key, ...seenItem(item)]).sort(), text).toEqual(
      dictionary && [...dictionary].map(([key, item]) => [key, ...expectedItem(item)]).sort(),
    )
  }
  return list !== undefined || dictionary !== undefined
}

const key = fc.stringMatching(/^[a-z*][a-z0-9_.*-]{0,3}$/)
const bare = fc.oneof(
  fc.integer({ min: -999, max: 999_999_999_999_999 }).map(String),
  fc.stringMatching(/^-?[0-9]{1,17}(\.[0-9]{0,4})?$/),
  fc.stringMatching(/^"([ !#-[\]-~]|\\["\\]){0,8}"$/),
  fc.stringMatching(/^[A-Za-z*][A-Za-z0-9:/!#$%&'*+.^_`|~-]{0,6}$/),
  fc.uint8Array({ maxLength: 6 }).map((bytes) => `:${Buffer.from(bytes).toString('base64')}:`),
  fc.constantFrom('?0', '?1', '?2', ':YQ:', ':YQ=:', ':Y:', ':=:'),
  fc.integer({ min: -10_000_000, max: 10_000_000_000 }).map((seconds) => `@${seconds}`),
  fc.constantFrom('%"a%c3%a9"', '%"%C3%A9"', '%"%c3"', '%"a b"', '%"', '%""'),
)
const parameters = fc
  .array(fc.tuple(fc.constantFrom(';', '; ', ';\t', ' ;'), key, fc.option(bare)), { maxLength: 3 })
  .map((list) =>
    list.map(([sign, name, value]) => sign + name + (value === null ? '' : `=${value}`)).join(''),
  )
const item = fc.tuple(bare, parameters).map((parts) => parts.join(''))
const inner = fc
  .tuple(fc.array(item, { maxLength: 3 }), fc.constantFrom(' ', '  ', ''), parameters)
  .map(([items, space, rest]) => `(${items.join(space)})${rest}`)
const one = fc.oneof({ arbitrary: item, weight: 4 }, inner)
const comma = fc.constantFrom(',', ', ', ' ,\t', ',,', ' , ')
const field = fc
  .tuple(
    fc.array(
      fc.oneof(
        one,
        fc.tuple(key, one).map((pair) => pair.join('=')),
        key,
      ),
      {
        minLength: 1,
        maxLength: 4,
      },
    ),
    comma,
    fc.constantFrom('', '', '', ' ', '\t', ','),
  )
  .map(([members, sign, end]) => members.join(sign) + end)

/** A text in which a few characters were replaced, left out or doubled. */
const mutated = fc
  .tuple(
    fc.oneof(field, fc.constant('"a";q=100;w=60, "b";r=0;t=5'), fc.constant('limit=5, reset=6')),
    fc.array(
      fc.record({
        at: fc.nat(60),
        cut: fc.nat(2),
        put: fc.oneof(
          fc.constantFrom('', '"', '\\', ';', '=', ',', '(', ')', ':', '?', '@', '%', '-', '.'),
          fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
        ),
      }),
      { minLength: 1, maxLength: 3 },
    ),
  )
  .map(([text, changes]) =>
    changes.reduce(
      (changed, { at, cut, put }) => changed.slice(0, at) + put + changed.slice(at + cut),
      text,
    ),
  )

describe('structured fields are read as another parser reads them:', () => {
  it.each([
    ['made at random', field],
    ['mutated', mutated],
    [
      'of any characters',
      fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((n) => String.fromCharCode(n)) }),
    ],
  ])('%s', (_name, texts) => {
    let valid = 0
    fc.assert(
      fc.property(texts, (text) => {
        if (compare(text)) valid += 1
      }),
      { numRuns: 3_000 },
    )
    expect(valid).toBeGreaterThan(0)
  })

  it('reads what follows a date', () => {
    expect(parseList('@1;a, @-2')?.map(seenItem)).toEqual([
      [1, [['a', true]]],
      [-2, []],
    ])
    expect([parseList('@1.5'), parseList('@'), parseList('@1234567890123456')]).toEqual(
      Array(3).fill(undefined),
    )
  })

  it('tells integers from decimals, and keeps the last of repeated names', () => {
    expect(parseList('"a";r=0;r=1.0')?.[0].parameters.get('r')).toEqual({
      kind: 'decimal',
      value: 1,
    })
    expect(parseDictionary('a=1, a=2')?.get('a')?.value).toBe(2)
  })

  it('takes no longer than the text is long', () => {
    const text = `"${'\\"'.repeat(500_000)}`
    expect([parseList(text), parseList(`${text}"`)?.length]).toEqual([undefined, 1])
  })
})
