import { createLimiter, type Decision, tokenBucket } from 'sluice'
import { afterEach, describe, expect, it } from 'vitest'
import { createLatency } from './latency.ts'
import type { LiveKeyNews, LiveNews } from './live-event.ts'
import { createLiveFeed, type LiveFeed } from './live-feed.ts'
import { createRecentRefusals } from './recent-refusals.ts'
import { createTally } from './tally.ts'

const feeds: LiveFeed[] = []
afterEach(() => {
  for (const feed of feeds.splice(0)) feed.close()
})

function makeFeed() {
  let nowMs = 1_000_000
  const feed = createLiveFeed({ limited: () => [], nowMs: () => nowMs })
  feeds.push(feed)
  return {
    feed,
    second(ms = 1_000) {
      nowMs += ms
      feed.tick()
    },
  }
}

/** Two that pass, and the rest are refused. */
function decisions(count: number, cost = 1): Decision[] {
  const limiter = createLimiter(tokenBucket({ limit: 2, per: '1h' }))
  return Array.from({ length: count }, () => limiter.check('a', cost))
}

function tell(feed: LiveFeed, decision: Decision, key = 'a', seconds?: number): void {
  feed.decided({ route: 'r', tier: 'free', key, cost: 1, decision, shadowed: false, seconds })
}

/** A watcher that keeps what it was told. */
function watching(feed: LiveFeed, key?: string) {
  const news: LiveNews[] = []
  const keyNews: LiveKeyNews[] = []
  const stop = feed.watch({
    key,
    news: (told) => news.push(told),
    keyNews: (told) => keyNews.push(told),
  })
  return { news, keyNews, stop }
}

describe('the live feed', () => {
  it('counts by route, tier, rule and outcome, second by second', () => {
    const { feed, second } = makeFeed()
    const { news } = watching(feed)
    for (const decision of decisions(5)) tell(feed, decision, 'a', 0.001)
    second(1_100)
    second()
    expect(news).toHaveLength(2)
    expect(news[0]).toMatchObject({
      forMs: 1_100,
      counts: [{ route: 'r', tier: 'free', rule: 'token-bucket', allowed: 2, refused: 3 }],
      latency: { count: 5, mostMs: 1 },
      talking: [{ key: 'a', count: 5 }],
      storeless: 0,
      isAway: false,
    })
    expect(news[1]).toMatchObject({ counts: [], latency: null, forMs: 1_000 })
  })

  it('remembers five minutes, and no more', () => {
    const { feed, second } = makeFeed()
    for (let i = 0; i < 400; i += 1) second()
    expect(feed.history()).toHaveLength(300)
    expect(feed.history().at(-1)?.atMs).toBe(1_400_000)
  })

  it('tells of the last refusals of a key, and then of all decisions about it', () => {
    const { feed, second } = makeFeed()
    const [first, , refused] = decisions(3)
    tell(feed, refused)
    const { keyNews } = watching(feed, 'a')
    const shown = { outcome: 'refused', rule: 'token-bucket', cost: 1, remaining: 0 }
    expect(keyNews).toMatchObject([{ key: 'a', decisions: [shown] }])
    tell(feed, first)
    tell(feed, first, 'b')
    for (let i = 0; i < 30; i += 1) tell(feed, refused)
    second()
    expect(keyNews[1].decisions).toHaveLength(20)
    expect(keyNews[1]).toMatchObject({ leftOut: 11 })
    expect(keyNews[1].decisions[0]).toMatchObject({ outcome: 'allowed', remaining: 1 })
  })

  it('tells nobody anything who has gone', () => {
    const { feed, second } = makeFeed()
    const watcher = watching(feed, 'a')
    const other = watching(feed, 'a')
    watcher.stop()
    tell(feed, decisions(1)[0])
    second()
    expect([watcher.news.length, watcher.keyNews.length]).toEqual([0, 1])
    expect(other.keyNews).toHaveLength(2)
  })

  it('keeps the times without the store', () => {
    const { feed, second } = makeFeed()
    feed.degraded('gone')
    feed.degraded('still gone')
    second()
    expect(feed.away()).toEqual([{ fromMs: 1_000_000, toMs: null, reason: 'gone' }])
    feed.degraded(undefined)
    feed.degraded(undefined)
    expect(feed.away()).toMatchObject([{ toMs: 1_001_000 }])
    tell(feed, { ...decisions(1)[0], source: 'local' })
    second()
    expect(feed.history().map(({ isAway, storeless }) => [isAway, storeless])).toEqual([
      [true, 0],
      [false, 1],
    ])
  })

  it('finds who asks most also among more than it looks at one by one', () => {
    const { feed, second } = makeFeed()
    const { news } = watching(feed)
    const [allowed] = decisions(1)
    for (let i = 0; i < 60_000; i += 1) tell(feed, allowed, i % 3 === 0 ? 'often' : `seldom ${i}`)
    second()
    const [most] = news[0].talking
    expect(most.key).toBe('often')
    // One in sixteen is counted for sixteen: 20,000 ± six standard deviations.
    expect(Math.abs(most.count - 20_000)).toBeLessThan(3_300)
  })
})

describe('a tally', () => {
  it('tells so many combinations apart, and forgets them when it is read', () => {
    const tally = createTally(2)
    for (const route of ['a', 'b', 'c', 'd', 'a']) tally.count(route, 't', 'r', 'allowed')
    const counts = tally.take().map(({ route, allowed }) => [route, allowed])
    expect(counts).toEqual([
      ['a', 2],
      ['b', 1],
      ['other', 2],
    ])
    expect(tally.take()).toEqual([])
  })
})

describe('latency', () => {
  it('is never told too short, and at most a fifth too long', () => {
    const latency = createLatency()
    for (let us = 1; us <= 1_000; us += 1) latency.add(us / 1_000_000)
    const { count, p50Ms, p99Ms, mostMs } = latency.take()!
    expect([count, mostMs]).toEqual([1_000, 1])
    expect(p50Ms / 0.5).toBeGreaterThanOrEqual(1)
    expect(p50Ms / 0.5).toBeLessThan(1.2)
    expect(p99Ms / 0.99).toBeGreaterThanOrEqual(1)
    expect(p99Ms).toBeLessThanOrEqual(mostMs)
    expect(latency.take()).toBeNull()
  })

  it('takes anything that a clock may give', () => {
    const latency = createLatency()
    for (const seconds of [0, -1, 1e9, 1e-12]) latency.add(seconds)
    expect(latency.take()).toMatchObject({ count: 4, mostMs: 1e12 })
  })
})

describe('recent refusals', () => {
  it('are ten of each key, and of so many keys', () => {
    const recent = createRecentRefusals(2)
    const refusal = { outcome: 'refused', rule: 'r', source: 'store', route: '', tier: '' } as const
    const note = (key: string, atMs: number) =>
      recent.note(key, { ...refusal, atMs, remaining: 0, cost: 1, retryAfterMs: 1 })
    for (let i = 0; i < 15; i += 1) note('a', i)
    note('b', 0)
    note('a', 15)
    note('c', 0)
    expect(recent.of('a').map(({ atMs }) => atMs)).toEqual([6, 7, 8, 9, 10, 11, 12, 13, 14, 15])
    expect([recent.of('b').length, recent.of('c').length]).toEqual([0, 1])
  })
})
