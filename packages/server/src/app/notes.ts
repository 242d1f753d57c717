import type { Logger } from 'pino'
import { createLiveFeed, type LiveFeed } from '../dashboard/live-feed.ts'
import type { Decided } from '../decided.ts'
import { createMetrics, type Metrics } from '../metrics/metrics.ts'
import { createTopKeys, type TopKeys } from '../metrics/top-keys.ts'
import type { DecisionLogSettings } from '../settings.ts'
import { openDecisionLog } from './decision-log.ts'
import { createRefusalLog } from './refusal-log.ts'

/** Notes are all who count or write down what happens: metrics, the dashboard's feed, the logs. */
export interface Notes {
  readonly metrics: Metrics
  readonly topKeys: TopKeys
  readonly live: LiveFeed
  decided(decided: Decided): void
  /** The store is away. Each limiter notices by itself; the first one is noted. */
  degraded(trouble: StoreTrouble): void
  /** The store is back, noted once, too. */
  recovered(): void
  isDegraded(): boolean
  close(): Promise<void>
}

/** StoreTrouble is who noticed that the store is away, where that is, and what went wrong. */
export interface StoreTrouble {
  readonly limiter: string
  readonly address: string
  readonly error: string
}

/** createNotes makes all of them; the decision log only where there is to be one. */
export function createNotes(
  version: string,
  logger: Logger,
  decisionLog: DecisionLogSettings | undefined,
): Notes {
  const metrics = createMetrics({ version })
  const topKeys = createTopKeys()
  const live = createLiveFeed({ limited: (count) => topKeys.top(count) })
  const refusals = createRefusalLog(logger)
  const decisions = decisionLog && openDecisionLog(decisionLog, logger)
  let isDegraded = false

  function recovered(): void {
    if (!isDegraded) return
    isDegraded = false
    metrics.degraded(false)
    live.degraded(undefined)
    logger.info('the store is back')
  }

  return {
    metrics,
    topKeys,
    live,
    decided(decided) {
      decisions?.note(decided)
      metrics.decided(decided)
      live.decided(decided)
      const { route, tier, key, decision, shadowed } = decided
      // Limiters of a new configuration do not know that it was away.
      if (isDegraded && decision.source === 'store') recovered()
      if (decision.allowed) return
      topKeys.count(key, 1, { route, tier, rule: decision.rule }, shadowed)
      refusals.note(decided)
    },
    degraded(trouble) {
      if (isDegraded) return
      isDegraded = true
      metrics.degraded(true)
      live.degraded(trouble.error)
      logger.warn(trouble, 'the store is away')
    },
    recovered,
    isDegraded: () => isDegraded,
    async close() {
      live.close()
      await decisions?.close()
    },
  }
}
