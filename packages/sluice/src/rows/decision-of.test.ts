import { describe, expect, it } from 'vitest'
import { createLimiter, tokenBucket } from '../index.ts'
import { decisionOf } from './decision-of.ts'

describe('the shapes of decisionOf', () => {
  it('have the fields of decisions, in the same order', () => {
    const rules = [1, 2].map((limit) => tokenBucket({ limit, per: '1s', name: `rule-${limit}` }))
    const [one, several] = [createLimiter(rules[0]), createLimiter(rules)]
    const decisions = [one.check('a'), one.check('a'), several.check('a'), several.check('a')]
    const [ofRule, ofAll] = decisionOf.shapes.map(Object.keys)
    expect(decisions.map(Object.keys)).toEqual(decisions.map(() => ofAll))
    const each = decisions.flatMap((decision) => decision.rules)
    expect(each.map(Object.keys)).toEqual(each.map(() => ofRule))
    expect(each.length).toBe(6)
  })
})
