import { describe, expect, it } from 'vitest'
import type { LiveDecision } from '../../src/dashboard/live-event.ts'
import { inWords, reasonOf, ruleInWords } from './words.ts'

const refusal: LiveDecision = {
  atMs: 0,
  route: 'search',
  tier: 'free',
  outcome: 'refused',
  rule: 'search',
  remaining: 2,
  cost: 5,
  retryAfterMs: 1_300,
  source: 'store',
}

describe('words', () => {
  it.each([
    [0.02, '20 µs'],
    [5.25, '5.3 ms'],
    [1_300, '1.3 s'],
    [59_001, '1 min'],
    [125_000, '2 min 5 s'],
    [3_600_000, '1 h'],
    [90_061_000, '1 d 1 h'],
  ])('format %d ms as %s', (ms, text) => {
    expect(inWords(ms)).toBe(text)
  })

  it('give the reason of a decision', () => {
    const said = (part: Partial<LiveDecision>) => reasonOf({ ...refusal, ...part })
    expect(said({})).toBe('rule search refused: cost 5, 2 left, retry in 1.3 s')
    expect(said({ outcome: 'shadowed' })).toBe(
      'rule search would have refused: cost 5, 2 left, retry in 1.3 s',
    )
    expect(said({ outcome: 'allowed' })).toBe('allowed: cost 5, 2 left of rule search')
    expect(said({ outcome: 'allowed', remaining: null })).toMatch(/no limit/)
    expect(said({ source: 'blocked' })).toBe('blocked for another 1.3 s')
    expect(said({ source: 'local' })).toMatch(/decided locally: the store is unavailable/)
    expect(said({ source: 'closed' })).toBe('refused: the store is unavailable')
    expect(said({ source: 'open', outcome: 'allowed' })).toBe('allowed: the store is unavailable')
  })

  it('describe a rule', () => {
    const figures = { algorithm: 'gcra', limit: 60, perMs: 60_000, capacity: 20 }
    const rule = { name: 'r', text: '60/1m burst 20 gcra', ...figures }
    expect(ruleInWords(rule)).toBe('60 per 1 min, at most 20 at once (gcra)')
    expect(ruleInWords({ ...rule, limit: 100_000 })).toMatch(/^100,000 per 1 min/)
    const calendar = { name: 'r', text: '60/month calendar-window', ...figures, capacity: 60 }
    expect(ruleInWords({ ...calendar, algorithm: 'calendar-window' })).toBe(
      '60 per month (calendar-window)',
    )
    expect(ruleInWords({ ...rule, limit: null, capacity: null })).toBe('no limit')
  })
})
