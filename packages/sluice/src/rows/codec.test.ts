import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixedWindow, gcra, slidingWindowLog, tokenBucket } from '../index.ts'
import { seededRandom } from '../testing/random.ts'
import { ruleMakers } from '../testing/streams.ts'
import {
  cellsOf,
  fillCells,
  labelOf,
  ownerOf,
  type RowLine,
  type RowText,
  readRow,
  textOf,
  writeRow,
} from './codec.ts'

const whole = fc.maxSafeNat()
const random = seededRandom(20)
const someRules = Object.values(ruleMakers).flatMap((make) =>
  Array.from({ length: 20 }, (_, i) => make(random, i % 2 === 0 ? undefined : `rule ${i}, a:b@!`)),
)
const line: fc.Arbitrary<RowLine> = fc.record({
  cells: fc.array(whole, { minLength: 1, maxLength: 5 }),
  freshMs: fc.option(whole, { nil: undefined }),
  label: fc.constantFrom(...someRules.map(labelOf)),
})

const someRow = fc.record({ blockUs: whole, lines: fc.array(line, { maxLength: 4 }) })

describe('the text of a row', () => {
  it('decodes to the row that was encoded', () =>
    fc.assert(
      fc.property(someRow, (row) => {
        fc.pre(row.blockUs > 0 || row.lines.length > 0)
        expect(readRow(writeRow(row))).toEqual(row)
      }),
    ))

  it('omits fresh times if the engine reports the expiry', () => {
    const label = labelOf(tokenBucket({ limit: 100, per: '60s' }))
    const text = (freshMs?: number) =>
      writeRow({ blockUs: 0, lines: [{ cells: [0x6609391060482], freshMs, label }] })
    expect(text()).toBe('6609391060482:100/1m')
    expect(text(5)).toBe('6609391060482@5:100/1m')
  })

  it.each([
    '',
    '\n',
    '5',
    'x:1/1m',
    '-5:1/1m',
    `${'f'.repeat(14)}:1/1m`,
    '5:',
    '!',
    '!x',
    '5:1/1m\n',
  ])('rejects %j', (text) => expect(readRow(text)).toBeUndefined())

  it('rejects arbitrary text', () =>
    fc.assert(
      fc.property(fc.string(), (text) => {
        const row = readRow(text)
        const labels = (each?: RowText) => each?.lines.map(({ label }) => label)
        if (row) expect(labels(readRow(writeRow(row)))).toEqual(labels(row))
        else expect(/^(![\da-f]{1,13}|[\da-f]{1,13}:[^\n]+)$/.test(text)).toBe(false)
      }),
    ))
})

describe('the label of a line', () => {
  it('contains the algorithm, name and text of every rule', () => {
    for (const rule of someRules) {
      const label = labelOf(rule)
      const name = rule.name === rule.algorithm.name ? '' : rule.name
      expect(ownerOf(label)).toBe(`${rule.algorithm.code}\t${name}`)
      const usual = rule.algorithm.name === 'token-bucket' ? '' : ` ${rule.algorithm.name}`
      expect(`${textOf(label)}${usual}`).toBe(rule.text)
    }
  })

  it('has one owner for all limits of a rule, and another per algorithm and name', () => {
    const owner = (rule: Parameters<typeof labelOf>[0]) => ownerOf(labelOf(rule))
    const bucket = owner(tokenBucket({ limit: 5, per: '1s' }))
    expect(owner(tokenBucket({ limit: 7, per: '1m', burst: 2 }))).toBe(bucket)
    const others = [
      gcra({ limit: 5, per: '1s' }),
      fixedWindow({ limit: 5, per: '1s', align: 'clock' }),
      tokenBucket({ limit: 5, per: '1s', name: 'T' }),
      fixedWindow({ limit: 5, per: '1s', name: 'token-bucket' }),
    ]
    expect(new Set([bucket, ...others.map(owner)]).size).toBe(5)
  })
})

describe('the cells of a line', () => {
  it('are the entries of a list, oldest first, and restore it', () => {
    const log = slidingWindowLog({ limit: 10, per: '1s' })
    const list = fillCells(new Float64Array(3), [100, 1, 200, 2], log)
    expect([...list]).toEqual([0, 2, 3, 100, 1, 200, 2])
    expect(cellsOf(list, 0, log)).toEqual([100, 1, 200, 2])
    expect([...fillCells(new Float64Array(3), [100], log)]).toEqual([0, 0, 0])
  })
})
