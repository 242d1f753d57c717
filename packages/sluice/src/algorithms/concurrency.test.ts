import { describe, expect, it } from 'vitest'
import { concurrency } from './concurrency.ts'

const START_US = 1_767_225_600_000_000
const SECOND_US = 1_000_000

/** Three units at once, each for up to 8 s: slots of 2 s, one of which begins at START_US. */
const rule = concurrency({ limit: 3, hold: '8s' })
const { take, release, holdAt, remaining, waitUs, freshAtUs } = rule.algorithm

function holding(...takes: readonly [us: number, units: number][]): Float64Array {
  const cells = new Float64Array(7)
  for (const [us, units] of takes) expect(take(cells, 0, rule, units, START_US + us)).toBe(0)
  return cells
}

describe('concurrency', () => {
  it('admits at most the limit at once, and reports when the next hold ends', () => {
    const cells = holding([0, 1], [1, 1], [2 * SECOND_US, 1])
    expect(take(cells, 0, rule, 1, START_US + 2 * SECOND_US)).toBe(8 * SECOND_US)
    expect(waitUs(cells, 0, rule, 3, START_US + 2 * SECOND_US)).toBe(10 * SECOND_US)
    expect(remaining(cells, 0, rule, START_US + 2 * SECOND_US)).toBe(0)
  })

  it('returns the units of a dead holder between hold and 1.25 · hold', () => {
    for (const us of [0, 1, SECOND_US, 2 * SECOND_US - 1]) {
      const cells = holding([us, 3])
      expect(remaining(cells, 0, rule, START_US + us + 8 * SECOND_US)).toBe(0)
      expect(remaining(cells, 0, rule, START_US + us + 10 * SECOND_US)).toBe(3)
    }
  })

  it('admits at the reported instant, not a microsecond before', () => {
    const cells = holding([1_234_567, 3])
    const nowUs = START_US + 3 * SECOND_US
    const wait = waitUs(cells, 0, rule, 1, nowUs)
    expect(remaining(cells, 0, rule, nowUs + wait - 1)).toBe(0)
    expect(remaining(cells, 0, rule, nowUs + wait)).toBe(3)
    expect(freshAtUs(cells, 0, rule)).toBe(nowUs + wait)
  })

  it('frees the units of a released hold at once, and no others', () => {
    const cells = holding([0, 1])
    const first = holdAt(cells, 0)
    take(cells, 0, rule, 2, START_US + 3 * SECOND_US)
    const second = holdAt(cells, 0)
    expect(release(cells, 0, rule, 1, first, START_US + 3 * SECOND_US)).toBe(true)
    expect(remaining(cells, 0, rule, START_US + 3 * SECOND_US)).toBe(1)
    expect(release(cells, 0, rule, 1, first, START_US + 3 * SECOND_US)).toBe(false)
    expect(release(cells, 0, rule, 2, second, START_US + 3 * SECOND_US)).toBe(true)
    expect(freshAtUs(cells, 0, rule)).toBe(0)
  })

  it('frees nothing when a hold is released after its end', () => {
    const cells = holding([0, 2])
    const hold = holdAt(cells, 0)
    take(cells, 0, rule, 3, START_US + 10 * SECOND_US)
    expect(release(cells, 0, rule, 2, hold, START_US + 10 * SECOND_US)).toBe(false)
    expect(remaining(cells, 0, rule, START_US + 10 * SECOND_US)).toBe(0)
  })

  it('keeps held units when the clock steps back', () => {
    const cells = holding([6 * SECOND_US, 2])
    expect(remaining(cells, 0, rule, START_US)).toBe(1)
    expect(take(cells, 0, rule, 1, START_US)).toBe(0)
    expect(remaining(cells, 0, rule, START_US + 15 * SECOND_US)).toBe(0)
    expect(remaining(cells, 0, rule, START_US + 16 * SECOND_US)).toBe(3)
  })

  it('merges to the stricter of two states, slot by slot', () => {
    const cells = holding([0, 2])
    const other = holding([0, 1], [4 * SECOND_US, 2])
    rule.algorithm.merge(cells, 0, other, 0, rule, START_US + 4 * SECOND_US)
    expect(waitUs(cells, 0, rule, 1, START_US + 4 * SECOND_US)).toBe(6 * SECOND_US)
    expect(waitUs(cells, 0, rule, 3, START_US + 4 * SECOND_US)).toBe(10 * SECOND_US)
    const empty = new Float64Array(7)
    rule.algorithm.merge(empty, 0, other, 0, rule, START_US + 4 * SECOND_US)
    expect([...empty]).toEqual([...other])
  })

  it('keeps held units when the limit changes, and applies a new hold to them', () => {
    const lower = concurrency({ limit: 1, hold: '8s' })
    const shorter = concurrency({ limit: 3, hold: '4s' })
    const cells = holding([0, 2])
    const hold = holdAt(cells, 0)
    rule.algorithm.carry(cells, 0, rule, lower, START_US)
    expect(remaining(cells, 0, lower, START_US)).toBe(0)
    expect(waitUs(cells, 0, lower, 1, START_US)).toBe(10 * SECOND_US)
    rule.algorithm.carry(cells, 0, lower, shorter, START_US + SECOND_US)
    expect(release(cells, 0, shorter, 2, hold, START_US + SECOND_US)).toBe(false)
    expect(remaining(cells, 0, shorter, START_US + 5 * SECOND_US)).toBe(1)
    expect(remaining(cells, 0, shorter, START_US + 6 * SECOND_US)).toBe(3)
  })

  it('never carries over more units than can be held, however often rules alternate', () => {
    const other = concurrency({ limit: 4, hold: '11s' })
    const floor = [rule, other].map(() => new Float64Array(7))
    take(floor[0], 0, rule, 1, START_US)
    for (let i = 0; i < 200; i += 1) {
      const nowUs = START_US + i * 300_000
      const [from, to] = i % 2 === 0 ? [rule, other] : [other, rule]
      const copy = floor[i % 2].slice()
      rule.algorithm.carry(copy, 0, from, to, nowUs)
      rule.algorithm.merge(floor[1 - (i % 2)], 0, copy, 0, to, nowUs)
    }
    expect(floor.flatMap((cells) => [...cells.subarray(2)]).every((units) => units <= 1e7)).toBe(
      true,
    )
  })

  it('rejects a bad hold, and names the option', () => {
    expect(() => concurrency({ limit: 10_000_001, hold: '8s' })).toThrow(/use tokenBucket/)
    const wrong = { limit: 3, per: '1s' } as never
    expect(() => concurrency(wrong)).toThrow('no option "per". It takes limit, hold, name')
    expect(() => concurrency({ limit: 3, hold: '0s' })).toThrow(
      expect.objectContaining({
        code: 'SLUICE_DURATION',
        message: expect.stringContaining('rule "concurrency": hold must be a duration from 1 ms'),
      }),
    )
  })
})
