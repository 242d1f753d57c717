import fc from 'fast-check'
import { createLimiter, parseRule } from 'sluice'
import { describe, expect, it } from 'vitest'
import type { Answer } from './answer.ts'
import { decisionText } from './decision-text.ts'

const units = fc.oneof(fc.nat(10_000_000), fc.constant(Number.POSITIVE_INFINITY))
const ms = fc.oneof(
  fc.nat(),
  fc.double({ min: 0, max: 1e13, noNaN: true, noDefaultInfinity: true }),
)
const figures = {
  capacity: units,
  remaining: units,
  // A request that can never pass has an infinite wait.
  retryAfterMs: fc.oneof(ms, fc.constant(Number.POSITIVE_INFINITY)),
  resetAfterMs: ms,
}
const rule = fc.string({ unit: 'binary', maxLength: 5 })

describe('decisionText', () => {
  it('equals JSON.stringify of an answer, with marks or without', () => {
    const marks = [{}, { never: true }, { shadow: true, wouldAllow: true }]
    const shadowed = { shadow: true, wouldAllow: false }
    const mark = fc.constantFrom(...marks, shadowed, { never: true, ...shadowed })
    const decisions = fc.record({
      allowed: fc.boolean(),
      ...figures,
      delayMs: ms,
      rule,
      rules: fc.array(
        fc.record({ rule, ...figures, nextAfterMs: ms, delayMs: ms }, { noNullPrototype: true }),
        { maxLength: 3 },
      ),
      source: fc.constantFrom('store', 'local', 'blocked'),
    }) as unknown as fc.Arbitrary<Answer>
    fc.assert(
      fc.property(decisions, mark, (decision, marks) => {
        const answer = { ...decision, ...marks } as Answer
        expect(decisionText(answer)).toBe(JSON.stringify(answer))
      }),
    )
  })

  it('has all fields of real decisions, in the same order', () => {
    const limiter = createLimiter([parseRule('1/1s'), parseRule('7/1h fixed-window')])
    for (let i = 0; i < 3; i += 1) {
      const decision = limiter.check('a')
      expect(decisionText(decision)).toBe(JSON.stringify(decision))
    }
    const free = createLimiter(parseRule('unlimited')).check('a')
    expect(decisionText(free)).toBe(JSON.stringify(free))
  })
})
