import { afterEach, describe, expect, it, vi } from 'vitest'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import { fieldsOf } from '../http/fields.ts'
import { createLimiter } from '../limiter/limiter.ts'
import { manualClock } from '../testing/manual-clock.ts'
import { pauseOf } from './pause.ts'

afterEach(() => {
  vi.unstubAllEnvs()
})

describe('pauseOf', () => {
  const nowMs = Date.UTC(2026, 0)
  it.each<[number, Record<string, string>, number]>([
    [200, {}, 0],
    [429, {}, 0],
    [429, { 'retry-after': '5' }, 5_000],
    [503, { 'retry-after': 'Thu, 01 Jan 2026 00:00:07 GMT' }, 7_000],
    [503, {}, 0],
    [200, { 'retry-after': '5' }, 0],
    [429, { 'retry-after': 'soon' }, 0],
    [429, { 'retry-after': '-5' }, 0],
    [429, { 'retry-after': '120, 60' }, 120_000],
    [429, { 'retry-after': '9999999999' }, 9_999_999_999_000],
    [429, { 'retry-after': 'x 2099', ratelimit: '"a";r=0;t=4' }, 4_000],
    [200, { ratelimit: '"a";r=3;t=9, "b";r=0;t=4' }, 4_000],
    [200, { ratelimit: '"\\'.repeat(30_000) }, 0],
    [200, { ratelimit: '"a,b;r=0;t=2";r=30;t=9' }, 0],
    [200, { ratelimit: 'limit=5, remaining=0, reset=6' }, 6_000],
    [200, { ratelimit: 'limit=5, remaining=01, reset=6' }, 0],
    [200, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '3' }, 3_000],
    [200, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(nowMs / 1_000 + 8) }, 8_000],
    [200, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(nowMs + 8_000) }, 8_000],
    [200, { 'x-ratelimit-remaining': '1', 'x-ratelimit-reset': '3' }, 0],
    [200, { 'ratelimit-remaining': '0', 'ratelimit-reset': '3' }, 3_000],
    // A field that is malformed anywhere is ignored as a whole; others still count.
    [200, { ratelimit: '"a";r=0;t=9, "b";r=0;t=4,' }, 0],
    [200, { ratelimit: '"a";r=0;t=9, "b;r=0;t=4' }, 0],
    [200, { ratelimit: '"a";r=0;t=9 "b";r=3;t=4' }, 0],
    [200, { ratelimit: '"a";r=0;T=9' }, 0],
    [200, { ratelimit: '"a";r=0;t=09x' }, 0],
    [200, { ratelimit: 'limit=5, remaining=0, reset=6 s' }, 0],
    [
      200,
      { ratelimit: '"a";r=0;t=9,', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '3' },
      3_000,
    ],
    // So is one whose items are not as the draft has them.
    [200, { ratelimit: 'a;r=0;t=9' }, 0],
    [200, { ratelimit: '"a";r=0;t=9, ("b");r=1;t=4' }, 0],
    [200, { ratelimit: '"a";r=0;t=9, "b";t=4' }, 0],
    [200, { ratelimit: '"a";r=0.0;t=9' }, 0],
    [200, { ratelimit: '"a";r=0;t=9.5' }, 0],
    [200, { ratelimit: '"a";r=0;t=-9' }, 0],
    [200, { ratelimit: '"a";r="0";t=9' }, 0],
    // Parameters that are not known do not matter; of repeated ones the last holds.
    [200, { ratelimit: '"a";r=0;t=9;pk=:YQ==:;acme-cost=1.5' }, 9_000],
    [200, { ratelimit: '"a";r=0;t=9;r=1' }, 0],
    [200, { ratelimit: '"a";r=1;r=0;t=9;t=2' }, 2_000],
    [200, { ratelimit: 'limit=5, remaining=0, reset=6, remaining=1' }, 0],
    [200, { ratelimit: '"a";r=0;t=4, "b";r=0;t=40, "c";r=0;t=7' }, 40_000],
    // What a list says is not overruled by older fields; where it names no time, they count.
    [
      200,
      { ratelimit: '"a";r=0;t=4', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '60' },
      4_000,
    ],
    [200, { ratelimit: '"a";r=1;t=4', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '60' }, 0],
    [200, { ratelimit: '"a";r=0', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '6' }, 6_000],
    // From a cache: durations began when the response was made, dates did not.
    [200, { ratelimit: '"a";r=0;t=9', age: '4' }, 5_000],
    [200, { ratelimit: '"a";r=0;t=9', age: '40' }, 0],
    [200, { ratelimit: '"a";r=0;t=9', age: 'old' }, 9_000],
    [200, { ratelimit: 'limit=5, remaining=0, reset=6', age: '4' }, 2_000],
    [200, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '9', age: '4' }, 5_000],
    [
      200,
      {
        'x-ratelimit-remaining': '0',
        'x-ratelimit-reset': String(nowMs / 1_000 + 8),
        age: '4',
      },
      8_000,
    ],
    [429, { 'retry-after': '9', age: '4, 1' }, 5_000],
    [503, { 'retry-after': 'Thu, 01 Jan 2026 00:00:07 GMT', age: '4' }, 7_000],
    [429, { 'retry-after': '9', age: '10', ratelimit: '"a";r=0;t=60' }, 0],
    // A policy with a burst below its quota gives back one unit after the other.
    [200, { ratelimit: '"a";r=0;t=1', 'ratelimit-policy': '"a";q=20;w=1;sluice-burst=1' }, 50],
    [200, { ratelimit: '"a";r=0;t=3', 'ratelimit-policy': '"a";q=2;w=5;sluice-burst=1' }, 2_500],
    [200, { ratelimit: '"a";r=0;t=2', 'ratelimit-policy': '"a";q=20;w=1;sluice-burst=1' }, 2_000],
    [200, { ratelimit: '"a";r=0;t=1', 'ratelimit-policy': '"b";q=20;w=1;sluice-burst=1' }, 1_000],
    [200, { ratelimit: '"a";r=0;t=1', 'ratelimit-policy': '"a";q=0;w=1;sluice-burst=1' }, 1_000],
    [200, { ratelimit: '"a";r=0;t=1', 'ratelimit-policy': '"a";q=20;w=1' }, 1_000],
    [200, { ratelimit: '"a";r=0;t=1', 'ratelimit-policy': '"a";q=20;w=1;sluice-burst=1,' }, 1_000],
    [429, { ratelimit: '"a";r=0;t=1', 'ratelimit-policy': '"a";q=20;w=1;sluice-burst=1' }, 1_000],
  ])('of %i with %o is %i ms', (status, headers, expected) =>
    expect(pauseOf(new Response(null, { status, headers }), nowMs)).toBe(expected),
  )

  it('is until the same instant whatever the form of a date, and wherever the client is', () => {
    vi.stubEnv('TZ', 'America/New_York')
    expect(new Date(nowMs).getHours()).toBe(19)
    for (const date of [
      'Thu, 01 Jan 2026 00:00:07 GMT',
      'Thursday, 01-Jan-26 00:00:07 GMT',
      'Thu Jan  1 00:00:07 2026',
    ]) {
      const headers = { 'retry-after': date }
      expect(pauseOf(new Response(null, { status: 429, headers }), nowMs)).toBe(7_000)
    }
  })

  it('is the longest of several field lines', () => {
    const headers = new Headers({ ratelimit: '"a";r=0;t=4' })
    headers.append('ratelimit', '"b";r=0;t=40')
    expect(pauseOf(new Response(null, { headers }), nowMs)).toBe(40_000)
    headers.append('ratelimit', '"c";r=0;t=')
    expect(pauseOf(new Response(null, { headers }), nowMs)).toBe(0)
  })

  it('is one unit long after the last unit of a limiter of our own', () => {
    const rule = tokenBucket({ limit: 60, per: '1m' })
    const limiter = createLimiter(rule, { clock: manualClock() })
    const decision = limiter.check('a', 60)
    for (const dialects of [['x', 'draft-11'], ['draft-7'], ['draft-6']] as const) {
      const fields = fieldsOf(dialects, decision, [rule], nowMs)
      const headers = fields.map(([name, value]) => [name, value] as [string, string])
      expect(pauseOf(new Response(null, { headers }), nowMs)).toBe(1_000)
    }
  })

  it('is no longer than a limiter of our own needs whose burst is below its limit', () => {
    for (const [limit, burst, cost] of [
      [100, 1, 1],
      [60, 7, 3],
      [3, 2, 1],
      [1, 1, 1],
    ]) {
      const rule = tokenBucket({ limit, per: '1s', burst })
      const clock = manualClock()
      const limiter = createLimiter(rule, { clock })
      limiter.check('a', burst % cost)
      for (let calls = 0; calls < 50; calls += 1) {
        const decision = limiter.check('a', cost)
        expect(decision.allowed).toBe(true)
        const fields = fieldsOf(['draft-11'], decision, [rule], nowMs)
        const headers = fields.map(([name, value]) => [name, value] as [string, string])
        const pauseMs = pauseOf(new Response(null, { headers }), nowMs, cost)
        expect(pauseMs).toBeLessThanOrEqual((cost * 1_000) / limit)
        clock.advance(Math.ceil(pauseMs * 1_000) / 1_000)
      }
    }
  })
})
