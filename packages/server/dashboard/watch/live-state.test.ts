import { describe, expect, it } from 'vitest'
import type { LiveDecision, LiveNews, LiveStart } from '../../src/dashboard/live-event.ts'
import { startedState, sumOf, totals, withKey, withSecond } from './live-state.ts'
import { createSseReader } from './sse.ts'

const start: LiveStart = {
  version: '1',
  tiers: {},
  routes: {},
  store: { kind: 'memory', onFailure: 'local' },
  mayChange: false,
  history: [],
  away: [],
}
const count = { route: 'a', tier: 'free', rule: 'r', allowed: 2, refused: 1, shadowed: 0 }
const news: LiveNews = {
  atMs: 1,
  forMs: 1_000,
  counts: [count, { ...count, route: 'b' }],
  latency: null,
  storeless: 0,
  isAway: false,
  away: [],
  limited: [],
  talking: [],
}

describe('the state of a stream', () => {
  it('adds up by route and tier, over five minutes', () => {
    let state = startedState(start, undefined)
    for (let i = 0; i < 310; i += 1) state = withSecond(state, news)
    expect(state.seconds).toHaveLength(300)
    const [first] = totals(state.seconds, ({ route }) => route)
    expect(first).toMatchObject({ name: 'a', allowed: 600, refused: 300 })
    expect(sumOf(news.counts, { route: '', tier: '' }).allowed).toBe(4)
    expect(sumOf(news.counts, { route: 'b', tier: 'free' }).allowed).toBe(2)
    expect(sumOf(news.counts, { route: '', tier: 'pro' }).allowed).toBe(0)
  })

  it('does not know the top keys before the first second', () => {
    const started = startedState(start, undefined)
    expect(started.top).toBeUndefined()
    expect(startedState(start, withSecond(started, news)).top).toEqual({ limited: [], talking: [] })
  })

  it('has decisions about a key once, the newest first, also after a reconnect', () => {
    const decision = (atMs: number) => ({ atMs, rule: 'r' }) as LiveDecision
    const told = { key: 'k', decisions: [decision(1), decision(2)], leftOut: 3 }
    let state = withKey(startedState(start, undefined), told)
    state = withKey(startedState(start, state), { ...told, decisions: [decision(2), decision(3)] })
    expect(state.decisions.map(({ atMs }) => atMs)).toEqual([3, 2, 1])
    expect(state.leftOut).toBe(6)
  })
})

describe('the reader of a stream', () => {
  it('finds the same events however the text is split', () => {
    const text = 'event: start\ndata: {"a":"\\n\\n"}\n\nevent: second\ndata: 1\n\nevent: key\ndata'
    const whole = createSseReader()(text)
    expect(whole).toEqual([
      { name: 'start', data: '{"a":"\\n\\n"}' },
      { name: 'second', data: '1' },
    ])
    for (let cut = 0; cut <= text.length; cut += 1) {
      const read = createSseReader()
      expect([...read(text.slice(0, cut)), ...read(text.slice(cut))]).toEqual(whole)
    }
  })
})
