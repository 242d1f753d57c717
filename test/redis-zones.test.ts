import { calendarWindow, createLimiter, createPolicy, parseRule } from 'sluice'
import { manualClock } from 'sluice/testing'
import { describe, expect, it } from 'vitest'
import { useRedis } from './redis/fixture.ts'
import { timedStore, type Wire } from './redis/timed.ts'

const redis = useRedis()

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** Creates a limiter on its own clock, and records how many values each script reply had. */
function made(rules: Parameters<typeof createLimiter>[0]) {
  const answers: number[] = []
  const wire: Wire = async (send, command, args) => {
    const answer = await send(command, args)
    if (Array.isArray(answer)) answers.push(answer.length)
    return answer
  }
  let steppedMs = 0
  const steady = manualClock(Date.UTC(2100, 0) * 1_000)
  const clock = { ...steady, nowUs: () => steady.nowUs() + steppedMs * 1_000 }
  const { store, prefix } = timedStore(redis.client, wire, {}, clock)
  const limiter = createLimiter(rules, { store, timeoutMs: 5_000 })
  const ask = async (key = 'alice', cost = 1) => {
    answers.length = 0
    const { allowed, retryAfterMs, source } = await limiter.check(key, cost)
    return [allowed, retryAfterMs, source, ...answers]
  }
  const stepBack = (ms: number) => {
    steppedMs -= ms
  }
  return { ask, clock, limiter, prefix, stepBack }
}

describe('a calendar window in a time zone on Redis', () => {
  it('is retried if Redis’s clock is outside the edges sent', async () => {
    const { ask, clock, stepBack } = made(
      calendarWindow({ limit: 1, per: 'day', zone: 'Asia/Kathmandu' }),
    )
    // The first request for the time reads the real clock, and this test's clock is in 2100.
    expect(await ask()).toEqual([true, 0, 'store', 1, 2])
    expect(await ask()).toEqual([false, 18.25 * HOUR_MS, 'store', 2])
    // Into the previous day, whose edges were sent, too: no period opens before the stored end.
    stepBack(DAY_MS)
    expect(await ask()).toEqual([false, 42.25 * HOUR_MS, 'store', 2])
    expect(await ask('bob')).toEqual([true, 0, 'store', 2])
    expect(await ask('bob')).toEqual([false, 18.25 * HOUR_MS, 'store', 2])
    // To before the edges: the reply is the instant alone.
    stepBack(3 * DAY_MS)
    expect(await ask()).toEqual([false, (4 * 24 + 18.25) * HOUR_MS, 'store', 1, 2])
    expect(await ask('carol')).toEqual([true, 0, 'store', 2])
    expect(await ask('carol')).toEqual([false, 18.25 * HOUR_MS, 'store', 2])
    clock.advance((4 * 24 + 18.25) * HOUR_MS)
    expect((await ask()).slice(0, 3)).toEqual([true, 0, 'store'])
  })

  it.each([
    '9/month zone America/Port-au-Prince startsOn 15',
    '9/year startsOn 02-29 zone Etc/GMT+12 name x%y',
    '9/week zone America/Argentina/Buenos_Aires startsOn 7',
  ])('writes a row that it can decode, for %s', async (text) => {
    const { ask, prefix } = made(parseRule(text))
    for (let i = 0; i < 3; i += 1) expect((await ask('alice', 2))[0]).toBe(true)
    expect(await redis.client.get(`${prefix}/alice`)).toMatch(/^[\da-f]+ 6:9\/.* zone /)
  })

  it('keeps used units when the zone or the first day changes', async () => {
    const rule = (options: object) =>
      calendarWindow({ limit: 9, per: 'month', name: 'quota', ...options })
    const tiers = {
      free: [rule({})],
      tokyo: [rule({ zone: 'Asia/Tokyo' })],
      middle: [rule({ zone: 'asia/tokyo', startsOn: 15 })],
    }
    const { limiter, clock } = made(createPolicy({ tiers, defaultTier: 'free' }))
    const at = async (tier: string) => {
      const { remaining, resetAfterMs } = await limiter.check('alice', 1, { tier })
      return [remaining, resetAfterMs / HOUR_MS]
    }
    clock.advance(10 * DAY_MS)
    expect(await at('free')).toEqual([8, 21 * 24])
    expect(await at('tokyo')).toEqual([7, 21 * 24 - 9])
    expect(await at('middle')).toEqual([6, 4 * 24 - 9])
    clock.advance(4 * DAY_MS - 9 * HOUR_MS)
    expect(await at('middle')).toEqual([8, 31 * 24])
  })
})
