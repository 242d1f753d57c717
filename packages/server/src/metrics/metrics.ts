import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { Source } from 'sluice'
import { type Decided, outcomeOf } from '../decided.ts'
import { addCounter, addHistogram, OTHER } from './quick-metrics.ts'
import { createStatsReader, type Stats } from './stats-reader.ts'

/** Proxied is one response of an upstream, or the status sent when it failed. */
export interface Proxied {
  readonly route: string
  readonly upstream: string
  readonly status: number
  readonly seconds: number
}

/** Metrics counts what the service does, for Prometheus. No label ever carries a client's key. */
export interface Metrics {
  decided(decided: Decided): void
  /** Counts a refusal without a decision of a limiter. */
  undecided(event: { readonly route: string; readonly reason: string }): void
  /** Counts a charge or a refund by the API. */
  settled(event: { readonly route: string; readonly verb: string }): void
  /** Counts an invalid token, whose client is identified by its address instead. */
  badToken(reason: string): void
  proxied(event: Proxied): void
  /** Sets whether the store is unavailable. Repeated calls are fine: only changes are counted. */
  degraded(isDegraded: boolean): void
  /** Call it for the first load of the configuration too. */
  reloaded(ok: boolean): void
  /** Sets what to read on each scrape; replaces an earlier one. It may fail or hang. */
  observeStats(read: () => Stats | Promise<Stats>): void
  /** The metrics of this process, to be joined with those of others. */
  figures(): Promise<Figures>
  /** The text of a scrape: of this process, or of all processes whose metrics are given. */
  text(all?: readonly Figures[]): Promise<string>
  /** The content type of `text()`. */
  readonly contentType: string
}

/** Figures are the metrics of a registry as prom-client's JSON. */
export type Figures = object[]

const DECISION_BUCKETS = [
  ...[0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5],
  ...[0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1],
]
const UPSTREAM_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** The sources of decisions made without the store. */
const DEGRADED_SOURCES: ReadonlySet<Source> = new Set(['local', 'open', 'closed'])

/**
 * createMetrics makes a registry with the service's metrics and those of the process. Make one per
 * process: the observers of the event loop and the garbage collector are never removed.
 */
export function createMetrics({ version }: { version: string }): Metrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  new Gauge({
    name: 'sluice_build_info',
    help: 'Always 1; the label has the version.',
    labelNames: ['version'],
    aggregator: 'first',
    registers,
  }).set({ version }, 1)

  const countDecision = addCounter(registry, {
    name: 'sluice_decisions_total',
    help: 'Decisions by route, tier, deciding rule, outcome and source.',
    labels: ['route', 'tier', 'rule', 'outcome', 'source'],
    open: 3,
  })
  const observeDecision = addHistogram(registry, {
    name: 'sluice_decision_seconds',
    help: 'Time to decide in seconds, by source.',
    label: 'source',
    buckets: DECISION_BUCKETS,
  })
  const countUndecided = addCounter(registry, {
    name: 'sluice_undecided_refusals_total',
    help: 'Refusals by the deny list, and of costs above the capacity of a rule.',
    labels: ['route', 'reason'],
    open: 1,
  })
  const countSettled = addCounter(registry, {
    name: 'sluice_settlements_total',
    help: 'Charges and refunds by the API.',
    labels: ['route', 'verb'],
    open: 1,
  })
  const countBadToken = addCounter(registry, {
    name: 'sluice_bad_tokens_total',
    help: 'Invalid tokens by reason; their clients are identified by address.',
    labels: ['reason'],
    open: 1,
  })
  const countResponse = addCounter(registry, {
    name: 'sluice_upstream_responses_total',
    help: 'Upstream responses by route, upstream and status class.',
    labels: ['route', 'upstream', 'status_class'],
    open: 2,
  })
  const observeUpstream = addHistogram(registry, {
    name: 'sluice_upstream_seconds',
    help: 'Upstream response time in seconds, by upstream.',
    label: 'upstream',
    buckets: UPSTREAM_BUCKETS,
  })
  const storeDegraded = new Gauge({
    name: 'sluice_store_degraded',
    help: '1 while the store is unavailable, else 0.',
    aggregator: 'max',
    registers,
  })
  const storeDegradedTotal = new Counter({
    name: 'sluice_store_degraded_total',
    help: 'Number of times the store became unavailable.',
    registers,
  })
  const degradedDecisions = new Counter({
    name: 'sluice_degraded_decisions_total',
    help: 'Decisions made without the store, by source.',
    labelNames: ['source'],
    registers,
  })
  const reloads = new Counter({
    name: 'sluice_reloads_total',
    help: 'Loads of the configuration by result.',
    labelNames: ['result'],
    registers,
  })
  const loadedAt = new Gauge({
    name: 'sluice_config_loaded_timestamp_seconds',
    help: 'Unix time when the configuration in use was loaded.',
    aggregator: 'min',
    registers,
  })
  const stats = createStatsReader(registry)

  // A series that exists before its first event lets rate() see that event.
  for (const source of DEGRADED_SOURCES) degradedDecisions.inc({ source }, 0)
  for (const result of ['ok', 'failed']) reloads.inc({ result }, 0)

  let isAway = false

  return {
    decided(decided) {
      const { route, tier, decision, seconds } = decided
      const { rule, source } = decision
      countDecision([route, tier, rule, outcomeOf(decided), source])
      if (seconds !== undefined) observeDecision(source, seconds)
      if (DEGRADED_SOURCES.has(source)) degradedDecisions.inc({ source })
    },
    undecided: ({ route, reason }) => countUndecided([route, reason]),
    settled: ({ route, verb }) => countSettled([route, verb]),
    badToken: (reason) => countBadToken([reason]),
    proxied({ route, upstream, status, seconds }) {
      countResponse([route, upstream, classOf(status)])
      observeUpstream(upstream, seconds)
    },
    degraded(isDegraded) {
      if (isDegraded && !isAway) storeDegradedTotal.inc()
      isAway = isDegraded
      storeDegraded.set(isDegraded ? 1 : 0)
    },
    reloaded(ok) {
      reloads.inc({ result: ok ? 'ok' : 'failed' })
      if (ok) loadedAt.setToCurrentTime()
    },
    observeStats: stats.observe,
    async figures() {
      await stats.refresh()
      return registry.getMetricsAsJSON()
    },
    async text(all) {
      if (all && all.length > 1) return AggregatorRegistry.aggregate([...all]).metrics()
      await stats.refresh()
      return registry.metrics()
    },
    contentType: registry.contentType,
  }
}

/** sumOfCounts adds up counters and histograms, and leaves out gauges. */
export function sumOfCounts(all: readonly Figures[]): Figures {
  const counts = new Map<string, { values: Map<string, Value> }>()
  for (const metric of all.flat() as MetricFigures[]) {
    if (metric.type !== 'counter' && metric.type !== 'histogram') continue
    const sum = counts.get(metric.name) ?? { ...metric, values: new Map<string, Value>() }
    counts.set(metric.name, sum)
    for (const value of metric.values) {
      const series = JSON.stringify([value.metricName, value.labels])
      const before = sum.values.get(series)?.value ?? 0
      sum.values.set(series, { ...value, value: before + value.value })
    }
  }
  return [...counts.values()].map((sum) => ({ ...sum, values: [...sum.values.values()] }))
}

interface MetricFigures {
  readonly name: string
  readonly type: string
  readonly values: readonly Value[]
}

interface Value {
  readonly metricName?: string
  readonly labels: object
  readonly value: number
}

function classOf(status: number): string {
  return status >= 100 && status < 600 ? `${Math.floor(status / 100)}xx` : OTHER
}
