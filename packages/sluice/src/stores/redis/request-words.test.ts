import { describe, expect, it } from 'vitest'
import { fixedWindow, tokenBucket, unlimited } from '../../index.ts'
import { remoteRules } from '../remote/remote-rules.ts'
import type { Request } from '../store.ts'
import { plannedText, wordOf } from './request-words.ts'

const one = remoteRules([tokenBucket({ limit: 5, per: '1s' })])
const several = remoteRules([
  tokenBucket({ limit: 5, per: '1s' }),
  unlimited(),
  fixedWindow({ limit: 5, per: '1s' }),
])

function request(given: Partial<Request>, next?: Request): Request {
  return {
    ...{ verb: 'check', set: one, key: 'a', fields: undefined, cost: 1, dueMs: 0, next },
    ...{ generation: 0, held: undefined, change: 0, pending: undefined, result: undefined },
    ...{ isCounted: true, isSent: false, isContended: false, order: 0, rows: undefined },
    ...{ lease: 0, untilUs: 0, done() {}, failed() {} },
    ...given,
  }
}

describe('the word of a row', () => {
  it('is the cost alone for a check by the first set', () => {
    expect(wordOf(1, request({ cost: 5 }))).toBe('5')
    expect(wordOf(2, request({ cost: 5 }))).toBe('2:5')
  })

  it('counts identical checks', () => {
    const three = request({}, request({}, request({ cost: 2 })))
    expect(wordOf(1, three)).toBe('1@c1x2c2x1')
  })

  it('has units for each rule that keeps state', () => {
    expect(wordOf(1, request({ set: several, cost: [1, 7, 4] }))).toBe('1@c1,4x1')
  })

  it('encodes leases, holds and checks that no penalty counts', () => {
    expect(wordOf(1, request({ lease: 20 }))).toBe('1@l1x20')
    expect(wordOf(1, request({ generation: 9 }))).toBe('1@a1x9')
    expect(wordOf(1, request({ generation: 9, isCounted: false }))).toBe('1@A1x9')
    expect(wordOf(1, request({ isCounted: false }))).toBe('1@C1x1')
  })

  it('encodes the holds of a permit and its change', () => {
    const held = { cost: [1, 1, 2], spentUs: 50, holds: Float64Array.from([0, 0, 0, 0, 7, 8]) }
    const finish = request({ verb: 'finish', set: several, held, change: [-1, 0, 3] })
    expect(wordOf(1, finish)).toBe('1@f-1,3x50,1,0,0,2,7,8')
  })

  it('has a letter for every other verb', () => {
    expect(wordOf(1, request({ verb: 'peek' }))).toBe('1@p1x0')
    expect(wordOf(1, request({ verb: 'refund', untilUs: 99 }))).toBe('1@r1x99')
    expect(wordOf(1, request({ verb: 'block', cost: 1_000 }))).toBe('1@b1000x0')
    expect(wordOf(1, request({ verb: 'reset', cost: 0 }))).toBe('1@x0x0')
  })
})

describe('a request about several rows', () => {
  it('has a number also where no rule keeps a state', () => {
    const own = remoteRules([unlimited({ name: 'a' }), unlimited({ name: 'b' })])
    const set = { ...own, parts: [{ field: 0, set: own, places: [0, 1] }] }
    const check = request({ set, cost: [1, 5], rows: [{ name: 'row', set: own }] })
    expect(JSON.parse(`[${plannedText(check, [1])}]`)).toEqual([1, 1, 1, 0])
  })
})
