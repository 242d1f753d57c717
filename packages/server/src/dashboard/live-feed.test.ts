import { createLimiter, type Decision, tokenBucket } from 'sluice'
import { afterEach, describe, expect, it } from 'vitest'
import { createLatency } from './latency.ts'
import { createLiveCounts } from './live-counts.ts'
import type { LiveKeyNews, LiveNews } from './live-event.ts'
import { createLiveFeed, type LiveAsked, type LiveFeed } from './live-feed.ts'
import { createLiveHub, type Watcher } from './live-hub.ts'
import { joinAway } from './live-join.ts'
import { createRecentRefusals } from './recent-refusals.ts'

type Past = Parameters<Watcher['start']>[0]
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
    async second(ms = 1_000) {
      nowMs += ms
      feed.tick()
      await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

/** Two requests pass, and the rest are refused. */
function decisions(count: number, cost = 1): Decision[] {
  const limiter = createLimiter(tokenBucket({ limit: 2, per: '1h' }))
  return Array.from({ length: count }, () => limiter.check('a', cost))
}

function tell(feed: LiveFeed, decision: Decision, key = 'a', seconds?: number): void {
  feed.decided({ route: 'r', tier: 'free', key, cost: 1, decision, shadowed: false, seconds })
}

/** A watcher that records its calls; each feed stands for a process. */
async function watching(feeds: LiveFeed | LiveFeed[], key?: string) {
  const all = [feeds].flat()
  const gather = async (asked: LiveAsked) => all.map((feed) => feed.tell(asked))
  const hub = createLiveHub({ feed: all[0], gather })
  const kept = { starts: [] as Past[], news: [] as LiveNews[], keyNews: [] as LiveKeyNews[] }
  const stop = await hub.watch({
    key,
    start: (told) => kept.starts.push(told),
    news: (told) => kept.news.push(told),
    keyNews: (told) => kept.keyNews.push(told),
  })
  return { ...kept, stop, hub }
}

const untold = { seen: {}, keys: [], refusalsOf: undefined }

describe('the live feed', () => {
  it('counts by route, tier, rule and outcome, second by second', async () => {
    const { feed, second } = makeFeed()
    const { news } = await watching(feed)
    for (const decision of decisions(5)) tell(feed, decision, 'a', 0.001)
    await second(1_100)
    await second()
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

  it('keeps five minutes, and no more', async () => {
    const { feed, second } = makeFeed()
    for (let i = 0; i < 400; i += 1) await second()
    const { seconds } = feed.tell(untold)
    expect([seconds.length, seconds.at(-1)?.atMs]).toEqual([300, 1_400_000])
    const { starts } = await watching(feed)
    expect(starts[0].history).toHaveLength(300)
  })

  it('sends the last refusals of a key, and then all decisions about it', async () => {
    const { feed, second } = makeFeed()
    const [first, , refused] = decisions(3)
    tell(feed, refused)
    const { keyNews } = await watching(feed, 'a')
    const shown = { outcome: 'refused', rule: 'token-bucket', cost: 1, remaining: 0 }
    expect(keyNews).toMatchObject([{ key: 'a', decisions: [shown] }])
    tell(feed, first)
    tell(feed, first, 'b')
    for (let i = 0; i < 30; i += 1) tell(feed, refused)
    await second()
    expect(keyNews[1].decisions).toHaveLength(20)
    expect(keyNews[1]).toMatchObject({ leftOut: 11 })
    expect(keyNews[1].decisions[0]).toMatchObject({ outcome: 'allowed', remaining: 1 })
  })

  it('sends nothing to a watcher that has left', async () => {
    const { feed, second } = makeFeed()
    const watcher = await watching(feed, 'a')
    const other = await watching(feed, 'a')
    watcher.stop()
    tell(feed, decisions(1)[0])
    await second()
    expect([watcher.news.length, watcher.keyNews.length]).toEqual([0, 1])
    expect(other.keyNews).toHaveLength(2)
  })

  it('keeps the outages of the store', async () => {
    const { feed, second } = makeFeed()
    feed.degraded('gone')
    feed.degraded('still gone')
    await second()
    expect(feed.tell(untold).away).toEqual([{ fromMs: 1_000_000, toMs: null, reason: 'gone' }])
    feed.degraded(undefined)
    feed.degraded(undefined)
    expect(feed.tell(untold).away).toMatchObject([{ toMs: 1_001_000 }])
    tell(feed, { ...decisions(1)[0], source: 'local' })
    await second()
    expect(feed.tell(untold).seconds.map(({ isAway, storeless }) => [isAway, storeless])).toEqual([
      [true, 0],
      [false, 1],
    ])
  })

  it('finds the top keys also among sampled decisions', async () => {
    const { feed, second } = makeFeed()
    const { news } = await watching(feed)
    const [allowed] = decisions(1)
    for (let i = 0; i < 60_000; i += 1) tell(feed, allowed, i % 3 === 0 ? 'often' : `seldom ${i}`)
    await second()
    const [most] = news[0].talking
    expect(most.key).toBe('often')
    // One in sixteen is counted for sixteen: 20,000 ± six standard deviations.
    expect(Math.abs(most.count - 20_000)).toBeLessThan(3_300)
  })
})

describe('the live feeds of several processes', () => {
  it('are joined, also when one of them is late', async () => {
    const one = makeFeed()
    const two = makeFeed()
    const [allowed, , refused] = decisions(3)
    tell(one.feed, allowed)
    tell(two.feed, allowed)
    await one.second()
    await two.second()
    const { starts, news, keyNews } = await watching([one.feed, two.feed], 'a')
    expect(starts[0].history).toMatchObject([{ counts: [{ allowed: 2, refused: 0 }] }])
    tell(one.feed, allowed)
    tell(two.feed, refused)
    await one.second()
    await two.second()
    await one.second()
    const counts = [{ allowed: 1 }, { allowed: 0, refused: 1 }]
    expect(news.map((each) => each.counts[0])).toMatchObject(counts)
    expect(news.map(({ forMs }) => forMs)).toEqual([1_000, 1_000])
    expect(news[1].talking).toMatchObject([{ key: 'a', count: 4 }])
    const outcomes = keyNews.flatMap(({ decisions }) => decisions.map(({ outcome }) => outcome))
    expect(outcomes).toEqual(['allowed', 'refused'])
  })

  it('go on when one of them does not answer', async () => {
    const { feed, second } = makeFeed()
    let isDown = false
    const gather = async (asked: LiveAsked) => {
      if (isDown) throw new Error('it has not started yet')
      return [feed.tell(asked)]
    }
    const news: LiveNews[] = []
    const watcher = { key: undefined, start() {}, keyNews() {} }
    await createLiveHub({ feed, gather }).watch({ ...watcher, news: (told) => news.push(told) })
    isDown = true
    tell(feed, decisions(1)[0])
    await second()
    expect(news).toEqual([])
    isDown = false
    await second()
    expect(news).toMatchObject([{ forMs: 2_000, counts: [{ allowed: 1 }] }])
  })

  it('join outages that overlap', () => {
    const time = (fromMs: number, toMs: number | null) => ({ fromMs, toMs, reason: 'gone' })
    const joined = joinAway([
      [time(1, 3), time(10, 12), time(20, null)],
      [time(2, 5), time(13, 14), time(21, 22)],
    ])
    expect(joined).toEqual([time(1, 5), time(10, 12), time(13, 14), time(20, null)])
  })
})

describe('live counts', () => {
  it('counts a limited number of combinations, and starts again when it is read', () => {
    const live = createLiveCounts(2)
    for (const route of ['a', 'b', 'c', 'd', 'a']) live.count(route, 't', 'r', 'allowed')
    const counts = live.take().map(({ route, allowed }) => [route, allowed])
    expect(counts).toEqual([
      ['a', 2],
      ['b', 1],
      ['other', 2],
    ])
    expect(live.take()).toEqual([])
  })
})

describe('latency', () => {
  it('is never reported too short, and at most a fifth too long', () => {
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

  it('accepts any reading of a clock', () => {
    const latency = createLatency()
    for (const seconds of [0, -1, 1e9, 1e-12]) latency.add(seconds)
    expect(latency.take()).toMatchObject({ count: 4, mostMs: 1e12 })
  })
})

describe('recent refusals', () => {
  it('are ten for each key, of a limited number of keys', () => {
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
