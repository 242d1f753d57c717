import {
  AggregatorRegistry,
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  Registry,
} from 'prom-client'
import type { Decision, Source } from 'sluice'
import { createLabelCap, OTHER } from './label-cap.ts'
import { createStatsReader, type Stats } from './stats-reader.ts'

/** Decided is one decision of a route. */
export interface Decided {
  readonly route: string
  readonly tier: string
  readonly decision: Decision
  /** The route refuses nobody: a refusal counts as `shadowed`. */
  readonly shadowed: boolean
  /** How long it took to decide; undefined when nobody measured it. */
  readonly seconds?: number
}

/** Proxied is one answer of an upstream, or the status that stands for its failure. */
export interface Proxied {
  readonly route: string
  readonly upstream: string
  readonly status: number
  readonly seconds: number
}

/** Metrics counts what the service does, for Prometheus. No label ever carries a client's key. */
export interface Metrics {
  decided(event: Decided): void
  proxied(event: Proxied): void
  /** Says whether the store is away. Call it as often as you like: only changes are counted. */
  degraded(isDegraded: boolean): void
  /** Call it for the first load of the configuration too. */
  reloaded(ok: boolean): void
  /** Gives what to read on each scrape, in place of what was given before. It may fail, or hang. */
  observeStats(read: () => Stats | Promise<Stats>): void
  /** The figures of this process, to be joined with those of others. */
  figures(): Promise<Figures>
  /** The text of a scrape: of this process, or of all whose figures are given. */
  text(all?: readonly Figures[]): Promise<string>
  /** The content type of `text()`. */
  readonly contentType: string
}

/** Figures are what prom-client makes of a registry. */
export type Figures = object[]

const MOST_COMBINATIONS = 10_000

const DECISION_BUCKETS = [
  ...[0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5],
  ...[0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1],
]
const UPSTREAM_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** Decisions of these sources were made without the store. */
const DEGRADED_SOURCES: ReadonlySet<Source> = new Set(['local', 'open', 'closed'])

/**
 * createMetrics makes a registry of its own, with the metrics of the process. Make one for each
 * process: what watches the event loop and the garbage collector is never taken down.
 */
export function createMetrics({ version }: { version: string }): Metrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  new Gauge({
    name: 'sluice_build_info',
    help: 'Always 1; the version is in the label.',
    labelNames: ['version'],
    aggregator: 'first',
    registers,
  }).set({ version }, 1)

  const decisions = new Counter({
    name: 'sluice_decisions_total',
    help: 'Decisions by route, tier, deciding rule, outcome and source.',
    labelNames: ['route', 'tier', 'rule', 'outcome', 'source'],
    registers,
  })
  const decisionSeconds = new Histogram({
    name: 'sluice_decision_seconds',
    help: 'Time to decide, by source.',
    labelNames: ['source'],
    buckets: DECISION_BUCKETS,
    registers,
  })
  const responses = new Counter({
    name: 'sluice_upstream_responses_total',
    help: 'Responses of upstreams by route, upstream and class of status.',
    labelNames: ['route', 'upstream', 'status_class'],
    registers,
  })
  const upstreamSeconds = new Histogram({
    name: 'sluice_upstream_seconds',
    help: 'Time an upstream took to respond.',
    labelNames: ['upstream'],
    buckets: UPSTREAM_BUCKETS,
    registers,
  })
  const storeDegraded = new Gauge({
    name: 'sluice_store_degraded',
    help: '1 while the store is away, else 0.',
    aggregator: 'max',
    registers,
  })
  const storeDegradedTotal = new Counter({
    name: 'sluice_store_degraded_total',
    help: 'How often the store went away.',
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
    help: 'Loads of the configuration, by result.',
    labelNames: ['result'],
    registers,
  })
  const loadedAt = new Gauge({
    name: 'sluice_config_loaded_timestamp_seconds',
    help: 'When the configuration in use was loaded, in seconds since 1970.',
    aggregator: 'min',
    registers,
  })
  const stats = createStatsReader(registry)

  // A series that exists before its first event lets rate() see that event.
  for (const source of DEGRADED_SOURCES) degradedDecisions.inc({ source }, 0)
  for (const result of ['ok', 'failed']) reloads.inc({ result }, 0)

  const fitsDecisions = createLabelCap(MOST_COMBINATIONS)
  const fitsResponses = createLabelCap(MOST_COMBINATIONS)
  let isAway = false

  return {
    decided({ route, tier, decision, shadowed, seconds }) {
      const { allowed, rule, source } = decision
      const outcome = allowed ? 'allowed' : shadowed ? 'shadowed' : 'refused'
      const labels = fitsDecisions(route, tier, rule)
        ? { route, tier, rule, outcome, source }
        : { route: OTHER, tier: OTHER, rule: OTHER, outcome, source }
      decisions.inc(labels)
      if (DEGRADED_SOURCES.has(source)) degradedDecisions.inc({ source })
      if (seconds !== undefined) decisionSeconds.observe({ source }, seconds)
    },
    proxied({ route, upstream, status, seconds }) {
      const fits = fitsResponses(route, upstream, '')
      const name = fits ? upstream : OTHER
      const status_class = classOf(status)
      responses.inc({ route: fits ? route : OTHER, upstream: name, status_class })
      upstreamSeconds.observe({ upstream: name }, seconds)
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

function classOf(status: number): string {
  return status >= 100 && status < 600 ? `${Math.floor(status / 100)}xx` : OTHER
}
