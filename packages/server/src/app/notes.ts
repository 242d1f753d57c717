import type { Logger } from 'pino'
import { createLiveFeed, type LiveFeed } from '../dashboard/live-feed.ts'
import type { Decided } from '../decided.ts'
import { createMetrics, type Metrics } from '../metrics/metrics.ts'
import { createTopKeys, type TopKeys } from '../metrics/top-keys.ts'
import type { DecisionLogSettings } from '../settings.ts'
import { openDecisionLog } from './decision-log.ts'
import { createRefusalLog } from './refusal-log.ts'

/** Notes pass events on to everything that records them: metrics, the live feed, the logs. */
export interface Notes {
  readonly metrics: Metrics
  readonly topKeys: TopKeys
  readonly live: LiveFeed
  decided(decided: Decided): void
  /** The store is unavailable. Every limiter reports it; only the first report is recorded. */
  degraded(trouble: StoreTrouble): void
  /** The store has recovered; recorded once. */
  recovered(): void
  isDegraded(): boolean
  close(): Promise<void>
}

/**
 * StoreTrouble is which limiter noticed that the store is unavailable, its address, and the error.
 */
export interface StoreTrouble {
  readonly limiter: string
  readonly address: string
  readonly error: string
}

/** createNotes makes all of them; the decision log only if it is configured. */
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
    logger.info('store recovered')
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
      // Limiters of a new configuration do not know that the store was unavailable.
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
      logger.warn(trouble, 'store unavailable')
    },
    recovered,
    isDegraded: () => isDegraded,
    async close() {
      live.close()
      await decisions?.close()
    },
  }
}
