import { describe, expect, it } from 'vitest'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import { unlimited } from '../algorithms/unlimited.ts'
import type { Decision } from '../decision.ts'
import { createLimiter } from '../limiter.ts'
import type { Rule } from '../rule.ts'
import { manualClock } from '../testing/manual-clock.ts'
import { type Dialect, exposed, fieldsOf, retryAfterOf } from './fields.ts'
import { refusalOf } from './refusal.ts'

const slow = tokenBucket({ limit: 10, per: 1_001 })
const free = unlimited({ name: 'free' })

/** What is decided about the last of so many units. */
function decided(rules: Rule[], units: number): Decision {
  const limiter = createLimiter(rules, { clock: manualClock() })
  for (let i = 1; i < units; i += 1) limiter.check('alice')
  return limiter.check('alice')
}

const told = (dialect: Dialect, decision: Decision, rules: Rule[], nowMs = 1_000_000) =>
  Object.fromEntries(fieldsOf([dialect], decision, rules, nowMs))

describe('times in fields are never too early:', () => {
  const refused = decided([slow], 11)

  it('a wait of 100.1 ms is a whole second', () => {
    expect(refused.retryAfterMs).toBe(100.1)
    expect(retryAfterOf(refused)).toBe('1')
    expect(told('draft-6', refused, [slow])['ratelimit-reset']).toBe('1')
    expect(told('draft-7', refused, [slow]).ratelimit).toBe('limit=10, remaining=0, reset=1')
    expect(told('draft-11', refused, [slow]).ratelimit).toBe('"token-bucket";r=0;t=1')
  })

  it.each([
    [1_000_000, '1001'],
    [1_000_899.9, '1001'],
    [1_000_900, '1002'],
  ])('it is over at the next second of the clock, asked at %d ms', (nowMs, reset) =>
    expect(told('x', refused, [slow], nowMs)['x-ratelimit-reset']).toBe(reset),
  )

  it.each([
    [1_000, 1],
    [1_001, 2],
    [999, 1],
  ])('a window of %d ms is %d s', (per, seconds) => {
    const rule = tokenBucket({ limit: 7, per })
    const { 'ratelimit-policy': policy } = told('draft-7', decided([rule], 1), [rule])
    expect(policy).toBe(`7;w=${seconds}`)
  })

  it('a window of a second and a tenth of a microsecond is two seconds', () => {
    const rule = tokenBucket({ limit: 9_999_999, per: '1s', burst: 10_000_000 })
    const { 'ratelimit-policy': policy } = told('draft-7', decided([rule], 1), [rule])
    expect(policy).toBe('10000000;w=2')
  })
})

describe('fields', () => {
  it('tell nothing of what nobody counted', () => {
    const decision = decided([slow], 1)
    for (const source of ['open', 'closed'] as const) {
      expect(fieldsOf(['x', 'draft-11'], { ...decision, source }, [slow], 0)).toEqual([])
    }
    expect(fieldsOf(['x'], { ...decision, source: 'local' }, [slow], 0)).toHaveLength(3)
  })

  it('leave rules out that have no limit, and are none if no rule has', () => {
    const decision = decided([free, slow], 1)
    expect(told('draft-11', decision, [free, slow])).toEqual({
      ratelimit: '"token-bucket";r=9;t=1',
      'ratelimit-policy': '"token-bucket";q=10;w=2',
    })
    expect(told('draft-6', decision, [free, slow])['ratelimit-policy']).toBe('10;w=2')
    expect(fieldsOf(['x', 'draft-11'], decided([free], 1), [free], 0)).toEqual([])
  })

  it('say of a blocked client that nothing is left, until the block ends', () => {
    const limiter = createLimiter(slow, { clock: manualClock() })
    limiter.block('alice', 59_001)
    const blocked = limiter.check('alice')
    expect(told('draft-11', blocked, [slow]).ratelimit).toBe('"token-bucket";r=0;t=60')
    expect(told('x', blocked, [slow])).toEqual({
      'x-ratelimit-limit': '10',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': '1060',
    })
  })

  it('may be read by scripts, besides what they might read before', () => {
    const fields = fieldsOf(['x', 'draft-7'], decided([slow], 1), [slow], 0)
    const names =
      'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit, RateLimit-Policy'
    expect(exposed(fields)).toBe(`${names}, Retry-After`)
    expect(exposed(fields, 'X-Total')).toBe(`X-Total, ${names}, Retry-After`)
  })
})

describe('a refusal', () => {
  const refused = decided([slow], 11)
  const bodyOf = (decision: Decision) => JSON.parse(refusalOf(decision).body)

  it('names the rules that refuse, and a time that reads well', () => {
    const roomy = tokenBucket({ limit: 100, per: '1s', name: 'roomy' })
    const two = decided([roomy, slow], 11)
    expect(bodyOf(two)).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Quota Exceeded',
      status: 429,
      detail: 'Too many requests. Try again in 1 second.',
      'violated-policies': ['token-bucket'],
    })
    expect(bodyOf({ ...refused, retryAfterMs: 1_001 }).detail).toContain('in 2 seconds.')
    expect(refusalOf(refused).fields).toEqual([
      ['content-type', 'application/problem+json'],
      ['cache-control', 'no-store'],
      ['retry-after', '1'],
    ])
  })

  it('is 503 where limits cannot be checked, and 429 where a client is blocked', () => {
    const closed = refusalOf({ ...refused, source: 'closed' })
    expect([closed.status, JSON.parse(closed.body).type]).toEqual([
      503,
      'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
    ])
    const blocked = refusalOf({ ...refused, source: 'blocked' })
    expect([blocked.status, JSON.parse(blocked.body).type]).toEqual([
      429,
      'https://iana.org/assignments/http-problem-types#abnormal-usage-detected',
    ])
  })
})
