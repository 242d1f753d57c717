import { describe, expect, it } from 'vitest'
import { concurrency } from '../algorithms/concurrency.ts'
import { fixedWindow } from '../algorithms/fixed-window.ts'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import { unlimited } from '../algorithms/unlimited.ts'
import type { Decision } from '../core/decision.ts'
import type { Rule } from '../core/rule.ts'
import { usableKey } from '../core/usable-key.ts'
import { createLimiter } from '../limiter/limiter.ts'
import { manualClock } from '../testing/manual-clock.ts'
import { type Dialect, exposed, fieldsOf, retryAfterOf } from './fields.ts'
import { partitionOf } from './partition.ts'
import { neverOf, refusalOf } from './refusal.ts'

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
    expect(retryAfterOf(refused, [slow])).toBe('1')
    expect(told('draft-6', refused, [slow])['ratelimit-reset']).toBe('1')
    expect(told('draft-7', refused, [slow]).ratelimit).toBe('limit=10, remaining=0, reset=1')
    expect(told('draft-11', refused, [slow]).ratelimit).toBe('"token-bucket";r=0;t=1')
  })

  it.each([
    [999_998.9, '1001'],
    [999_999, '1001'],
    [999_999.1, '1002'],
  ])('the reset is rounded up to the next second of the clock, at %d ms', (nowMs, reset) => {
    expect(refused.resetAfterMs).toBe(1_001)
    expect(told('x', refused, [slow], nowMs)['x-ratelimit-reset']).toBe(reset)
  })

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
  it('are absent for requests that were not counted', () => {
    const decision = decided([slow], 1)
    for (const source of ['open', 'closed'] as const) {
      expect(fieldsOf(['x', 'draft-11'], { ...decision, source }, [slow], 0)).toEqual([])
    }
    expect(fieldsOf(['x'], { ...decision, source: 'local' }, [slow], 0)).toHaveLength(3)
  })

  it('leave out rules without a limit, and are absent if no rule has one', () => {
    const decision = decided([free, slow], 1)
    expect(told('draft-11', decision, [free, slow])).toEqual({
      ratelimit: '"token-bucket";r=9;t=2',
      'ratelimit-policy': '"token-bucket";q=10;w=2',
    })
    expect(told('draft-6', decision, [free, slow])['ratelimit-policy']).toBe('10;w=2')
    expect(fieldsOf(['x', 'draft-11'], decided([free], 1), [free], 0)).toEqual([])
  })

  it('show no remaining units for a blocked client until the block ends', () => {
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

  it('leave out unknown policies, and are never empty', () => {
    const decision = decided([slow], 10)
    expect(told('draft-11', decision, [])).toEqual({ ratelimit: '"token-bucket";r=0;t=1' })
    expect(told('draft-6', decision, [])).not.toHaveProperty('ratelimit-policy')
  })

  it('have the partition in every item, as bytes', () => {
    const day = fixedWindow({ limit: 100, per: '1d', name: 'day' })
    const rules = [slow, day]
    const pk = partitionOf('h\u00e9')
    expect(pk).toBe(';pk=:aMOp:')
    const fields = Object.fromEntries(
      fieldsOf(['x', 'draft-11'], decided(rules, 1), rules, 1_000_000, pk),
    )
    expect(fields.ratelimit).toBe('"token-bucket";r=9;t=2;pk=:aMOp:, "day";r=99;t=86400;pk=:aMOp:')
    expect(fields['ratelimit-policy']).toBe(
      '"token-bucket";q=10;w=2;pk=:aMOp:, "day";q=100;w=86400;pk=:aMOp:',
    )
    expect([partitionOf(undefined), partitionOf('')]).toEqual(['', ';pk=::'])
    expect(() => partitionOf(7)).toThrow(/partitionKey must give a string .* got 7/)
  })

  it('have the counted key for a forged partition', () => {
    const told = (pk: string) => Buffer.from(pk.slice(5, -1), 'base64').toString()
    for (const key of ['x'.repeat(1_025), ['a', 'b'], { a: 'b' }]) {
      expect(told(partitionOf(key))).toBe(usableKey(key))
    }
    expect(partitionOf(null)).toBe('')
  })

  it('are exposed to scripts in addition to earlier fields', () => {
    const fields = fieldsOf(['x', 'draft-7'], decided([slow], 1), [slow], 0)
    const names =
      'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit, RateLimit-Policy'
    expect(exposed(fields)).toBe(`${names}, Retry-After`)
    expect(exposed(fields, 'X-Total')).toBe(`X-Total, ${names}, Retry-After`)
  })
})

describe('a refusal', () => {
  const refused = decided([slow], 11)
  const bodyOf = (decision: Decision) => JSON.parse(refusalOf(decision, [slow]).body)

  it('names the rules that refuse, and a readable time', () => {
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
    expect(refusalOf(refused, [slow]).fields).toEqual([
      ['content-type', 'application/problem+json'],
      ['cache-control', 'no-store'],
      ['retry-after', '1'],
    ])
  })

  it('names the rules that a request can never pass, without advice for operators', () => {
    const large = tokenBucket({ limit: 100, per: '1s', name: 'large' })
    const { detail, 'violated-policies': violated } = JSON.parse(neverOf(11, [slow, large]).body)
    expect(violated).toEqual(['token-bucket'])
    expect(detail).toBe(
      'This request costs 11 and can never pass: "token-bucket" admits at most 10. Waiting does not help.',
    )
    expect(JSON.parse(neverOf(11, []).body).detail).toBe(
      'This request costs 11 and can never pass. Waiting does not help.',
    )
  })

  it('by a block counts for every rule with a limit', () => {
    const limiter = createLimiter([free, slow], { clock: manualClock() })
    limiter.block('alice', '1m')
    expect(bodyOf(limiter.check('alice'))['violated-policies']).toEqual(['token-bucket'])
  })

  it('is 503 if limits cannot be checked, and 429 if a client is blocked', () => {
    const closed = refusalOf({ ...refused, source: 'closed' }, [slow])
    expect(JSON.parse(closed.body)).toMatchObject({
      type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
      title: 'Temporary Reduced Capacity',
      status: 503,
      'violated-policies': ['token-bucket'],
    })
    const blocked = refusalOf({ ...refused, source: 'blocked' }, [slow])
    expect([blocked.status, JSON.parse(blocked.body).type]).toEqual([
      429,
      'https://iana.org/assignments/http-problem-types#abnormal-usage-detected',
    ])
  })
})

describe('a rule that holds units', () => {
  const held = concurrency({ limit: 2, hold: '1m', name: 'held' })
  const minute = tokenBucket({ limit: 60, per: '1m', name: 'minute' })

  /** Decisions about requests of which none ends; the last one of so many. */
  function last(rules: Rule[], requests: number): Decision {
    const limiter = createLimiter(rules, { clock: manualClock() })
    for (let i = 1; i < requests; i += 1) limiter.tryAcquire('alice')
    return limiter.tryAcquire('alice').decision
  }
  const bodyOf = (decision: Decision, rules: Rule[]) => JSON.parse(refusalOf(decision, rules).body)

  it('is announced by its own unit, without a window', () => {
    const rules = [minute, held]
    expect(told('draft-11', last(rules, 1), rules)).toEqual({
      ratelimit: '"minute";r=59;t=59, "held";r=1',
      'ratelimit-policy': '"minute";q=60;w=60, "held";q=2;qu="concurrent-requests"',
    })
    const partition = Object.fromEntries(
      fieldsOf(['draft-11'], last([held], 1), [held], 0, ';pk=:YQ==:'),
    )
    expect(partition).toEqual({
      ratelimit: '"held";r=1;pk=:YQ==:',
      'ratelimit-policy': '"held";q=2;qu="concurrent-requests";pk=:YQ==:',
    })
  })

  it('leaves the older fields to rates, even if it refuses', () => {
    const rules = [held, minute, tokenBucket({ limit: 8, per: '1m', name: 'few' })]
    for (const requests of [1, 3]) {
      const decision = last(rules, requests)
      const remaining = String(8 - Math.min(requests, 2))
      expect(told('x', decision, rules)).toMatchObject({
        'x-ratelimit-limit': '8',
        'x-ratelimit-remaining': remaining,
      })
      expect(told('draft-6', decision, rules)).toMatchObject({
        'ratelimit-limit': '8',
        'ratelimit-policy': '60;w=60, 8;w=60',
      })
      expect(told('draft-7', decision, rules).ratelimit).toContain(`remaining=${remaining}`)
    }
    expect(last(rules, 3).rule).toBe('held')
    for (const dialect of ['x', 'draft-6', 'draft-7'] as const) {
      expect(told(dialect, last([held], 1), [held])).toEqual({})
    }
  })

  it('lets a client retry soon, and gives the latest time in words only', () => {
    const refused = last([minute, held], 3)
    expect(refused.retryAfterMs).toBeGreaterThan(50_000)
    expect(retryAfterOf(refused, [minute, held])).toBe('1')
    expect(bodyOf(refused, [minute, held])).toMatchObject({
      title: 'Quota Exceeded',
      status: 429,
      detail:
        'Too many requests at once. Try again when one of them has ended, in 75 seconds at the latest.',
      'violated-policies': ['held'],
    })
  })

  it('does not shorten the wait of a rate that refuses as well, of a block, or of an outage', () => {
    const slow = tokenBucket({ limit: 2, per: '20s', name: 'slow' })
    const rules = [slow, held]
    const refused = last(rules, 3)
    expect(retryAfterOf(refused, rules)).toBe('10')
    expect(bodyOf(refused, rules)).toMatchObject({
      detail: 'Too many requests. Try again in 10 seconds.',
      'violated-policies': ['slow', 'held'],
    })
    const blocked = { ...refused, source: 'blocked', retryAfterMs: 90_000 } as const
    expect(retryAfterOf(blocked, rules)).toBe('90')
    expect(retryAfterOf({ ...blocked, source: 'closed' }, rules)).toBe('90')
  })
})
