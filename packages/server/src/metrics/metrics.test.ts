import { register } from 'prom-client'
import { createLimiter, type Decision, gcra } from 'sluice'
import { manualClock } from 'sluice/testing'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createMetrics, type Metrics, sumOfCounts } from './metrics.ts'

const allowed: Decision = {
  allowed: true,
  capacity: 10,
  remaining: 9,
  retryAfterMs: 0,
  resetAfterMs: 100,
  delayMs: 0,
  rule: 'burst',
  rules: [],
  source: 'store',
}
const refused: Decision = { ...allowed, allowed: false, remaining: 0, retryAfterMs: 50 }
const free = {
  ...{ route: 'search', tier: 'free', key: 'alice', cost: 1 },
  ...{ shadowed: false, seconds: undefined },
}

/** Every sample of a scrape: the name with its labels as they are written → the value. */
async function samples(metrics: Metrics): Promise<Map<string, number>> {
  const lines = (await metrics.text()).split('\n').filter((line) => line && !line.startsWith('#'))
  return new Map(
    lines.map((line) => {
      const cut = line.lastIndexOf(' ')
      return [line.slice(0, cut), Number(line.slice(cut + 1))]
    }),
  )
}

function startingWith(all: Map<string, number>, start: string): string[] {
  return [...all.keys()].filter((name) => name.startsWith(start))
}

describe('createMetrics', () => {
  afterEach(() => void vi.useRealTimers())

  it('counts decisions by route, tier, rule, outcome and source', async () => {
    const metrics = createMetrics({ version: '1.2.3' })
    metrics.decided({ ...free, decision: allowed })
    metrics.decided({ ...free, decision: allowed })
    metrics.decided({ ...free, decision: refused })
    metrics.decided({ ...free, decision: refused, shadowed: true })
    metrics.decided({ ...free, decision: { ...allowed, source: 'cache' }, shadowed: true })
    const all = await samples(metrics)
    const labels = 'route="search",tier="free",rule="burst"'
    const name = `sluice_decisions_total{${labels}`
    expect(all.get(`${name},outcome="allowed",source="store"}`)).toBe(2)
    expect(all.get(`${name},outcome="refused",source="store"}`)).toBe(1)
    expect(all.get(`${name},outcome="shadowed",source="store"}`)).toBe(1)
    expect(all.get(`${name},outcome="allowed",source="cache"}`)).toBe(1)
    expect(startingWith(all, 'sluice_decisions_total')).toHaveLength(4)
    expect(all.get('sluice_build_info{version="1.2.3"}')).toBe(1)
  })

  it('takes the decisions of a limiter', async () => {
    const metrics = createMetrics({ version: '1' })
    const limiter = createLimiter(gcra({ limit: 1, per: '1s', name: 'each' }), {
      clock: manualClock(),
    })
    for (let i = 0; i < 3; i++) metrics.decided({ ...free, decision: limiter.check('alice') })
    const all = await samples(metrics)
    const name = 'sluice_decisions_total{route="search",tier="free",rule="each"'
    expect(all.get(`${name},outcome="allowed",source="store"}`)).toBe(1)
    expect(all.get(`${name},outcome="refused",source="store"}`)).toBe(2)
    expect([...all.keys()].filter((sample) => sample.includes('alice'))).toEqual([])
  })

  it('measures decisions from 10 µs to 1 s, those with a time only', async () => {
    const metrics = createMetrics({ version: '1' })
    metrics.decided({ ...free, decision: allowed })
    metrics.decided({ ...free, decision: allowed, seconds: 0.000_01 })
    metrics.decided({ ...free, decision: allowed, seconds: 0.000_011 })
    metrics.decided({ ...free, decision: allowed, seconds: 1.5 })
    const all = await samples(metrics)
    expect(all.get('sluice_decision_seconds_bucket{le="0.00001",source="store"}')).toBe(1)
    expect(all.get('sluice_decision_seconds_bucket{le="0.000025",source="store"}')).toBe(2)
    expect(all.get('sluice_decision_seconds_bucket{le="1",source="store"}')).toBe(2)
    expect(all.get('sluice_decision_seconds_count{source="store"}')).toBe(3)
  })

  it('counts the combinations beyond 10,000 as other', async () => {
    const metrics = createMetrics({ version: '1' })
    for (let i = 0; i < 10_500; i++) {
      metrics.decided({ ...free, tier: `tier-${i}`, decision: allowed })
      metrics.proxied({ route: `route-${i}`, upstream: `u-${i}`, status: 200, seconds: 0 })
    }
    metrics.decided({ ...free, tier: 'tier-9999', decision: allowed })
    const all = await samples(metrics)
    const decisions = startingWith(all, 'sluice_decisions_total')
    expect(decisions).toHaveLength(10_001)
    const rest = 'outcome="allowed",source="store"}'
    const other = `sluice_decisions_total{route="other",tier="other",rule="other",${rest}`
    expect(all.get(other)).toBe(500)
    const known = `sluice_decisions_total{route="search",tier="tier-9999",rule="burst",${rest}`
    expect(all.get(known)).toBe(2)
    expect(startingWith(all, 'sluice_upstream_responses_total')).toHaveLength(10_001)
    expect(all.get('sluice_upstream_seconds_count{upstream="other"}')).toBe(500)
  })

  it('escapes labels, so that no name can end a label or begin a line', async () => {
    const metrics = createMetrics({ version: '1' })
    const rule = 'a"} 1\nb\\'
    metrics.decided({ ...free, decision: { ...allowed, rule } })
    const [sample] = startingWith(await samples(metrics), 'sluice_decisions_total')
    expect(sample).toContain(String.raw`rule="a\"} 1\nb\\",outcome=`)
  })

  it('adds up what processes have counted, each series by itself, and nothing else', async () => {
    const figures = async (...decisions: Decision[]) => {
      const metrics = createMetrics({ version: '1' })
      for (const decision of decisions) metrics.decided({ ...free, decision, seconds: 0.5 })
      metrics.observeStats(() => ({ keys: 5, evictions: 3 }))
      return metrics.figures()
    }
    const sum = sumOfCounts([await figures(allowed, refused), await figures(allowed)])
    const joined = await createMetrics({ version: '1' }).text([sum, []])
    const lines = joined.split('\n').filter((line) => line.startsWith('sluice_decision'))
    const labels = 'route="search",tier="free",rule="burst"'
    expect(lines).toEqual(
      expect.arrayContaining([
        `sluice_decisions_total{${labels},outcome="allowed",source="store"} 2`,
        `sluice_decisions_total{${labels},outcome="refused",source="store"} 1`,
        'sluice_decision_seconds_bucket{le="0.25",source="store"} 0',
        'sluice_decision_seconds_bucket{le="0.5",source="store"} 3',
        'sluice_decision_seconds_sum{source="store"} 1.5',
      ]),
    )
    expect(joined).not.toMatch(/^sluice_keys /m)
  })

  it('counts responses of upstreams by class of status', async () => {
    const metrics = createMetrics({ version: '1' })
    const to = { route: 'search', upstream: 'main', seconds: 0.02 }
    for (const status of [100, 200, 204, 503, 599, 600, 99, Number.NaN]) {
      metrics.proxied({ ...to, status })
    }
    const all = await samples(metrics)
    const of = (status: string) =>
      all.get(
        `sluice_upstream_responses_total{route="search",upstream="main",status_class="${status}"}`,
      )
    expect(['1xx', '2xx', '4xx', '5xx', 'other'].map(of)).toEqual([1, 2, undefined, 2, 3])
    expect(all.get('sluice_upstream_seconds_bucket{le="0.01",upstream="main"}')).toBe(0)
    expect(all.get('sluice_upstream_seconds_bucket{le="0.025",upstream="main"}')).toBe(8)
  })

  it('counts outages of the store, and the decisions made without it', async () => {
    const metrics = createMetrics({ version: '1' })
    const before = await samples(metrics)
    expect(before.get('sluice_store_degraded')).toBe(0)
    expect(before.get('sluice_degraded_decisions_total{source="closed"}')).toBe(0)
    for (const away of [true, true, false, false, true]) metrics.degraded(away)
    for (const source of ['local', 'local', 'open', 'blocked', 'lease'] as const) {
      metrics.decided({ ...free, decision: { ...allowed, source } })
    }
    const all = await samples(metrics)
    expect(all.get('sluice_store_degraded')).toBe(1)
    expect(all.get('sluice_store_degraded_total')).toBe(2)
    expect(all.get('sluice_degraded_decisions_total{source="local"}')).toBe(2)
    expect(all.get('sluice_degraded_decisions_total{source="open"}')).toBe(1)
    expect(startingWith(all, 'sluice_degraded_decisions_total')).toHaveLength(3)
  })

  it('keeps the time of the last successful load', async () => {
    const metrics = createMetrics({ version: '1' })
    vi.useFakeTimers({ toFake: ['Date'], now: 1_700_000_000_000 })
    metrics.reloaded(true)
    vi.setSystemTime(1_800_000_000_000)
    metrics.reloaded(false)
    const all = await samples(metrics)
    expect(all.get('sluice_reloads_total{result="ok"}')).toBe(1)
    expect(all.get('sluice_reloads_total{result="failed"}')).toBe(1)
    expect(all.get('sluice_config_loaded_timestamp_seconds')).toBe(1_700_000_000)
  })

  it('uses a registry of its own, with the metrics of the process', async () => {
    const metrics = createMetrics({ version: '1' })
    createMetrics({ version: '2' })
    expect(register.getMetricsAsArray()).toEqual([])
    expect(startingWith(await samples(metrics), 'process_cpu_seconds_total')).toHaveLength(1)
    expect(metrics.contentType).toBe('text/plain; version=0.0.4; charset=utf-8')
  })

  it('scrapes the statistics of the store, and all other metrics when these cannot be read', async () => {
    const metrics = createMetrics({ version: '1' })
    metrics.decided({ ...free, decision: allowed })
    metrics.observeStats(async () => ({ keys: 5, evictions: 3 }))
    const known = await samples(metrics)
    expect([known.get('sluice_keys'), known.get('sluice_evictions')]).toEqual([5, 3])
    metrics.observeStats(() => Promise.reject(new Error('down')))
    const all = await samples(metrics)
    expect([all.get('sluice_keys'), all.get('sluice_stats_errors_total')]).toEqual([NaN, 1])
    expect(startingWith(all, 'sluice_decisions_total')).toHaveLength(1)
  })
})
