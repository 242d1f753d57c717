import type { Logger } from 'pino'
import type { Decided } from '../decided.ts'

/** RefusalLog writes refusals to the log at a bounded rate. */
export interface RefusalLog {
  note(refused: Decided): void
}

const WINDOW_MS = 1_000
const MOST_LINES = 10

/**
 * createRefusalLog writes at most ten refusals per second; the next line after that says how many
 * were left out.
 */
export function createRefusalLog(
  logger: Logger,
  nowMs: () => number = () => performance.now(),
): RefusalLog {
  let startMs = nowMs()
  let lines = 0
  let leftOut = 0
  return {
    note(refused) {
      if (nowMs() - startMs >= WINDOW_MS) {
        startMs = nowMs()
        lines = 0
      }
      if (lines >= MOST_LINES) {
        leftOut += 1
        return
      }
      lines += 1
      const { route, tier, key, cost, decision, shadowed } = refused
      const { rule, remaining, retryAfterMs, source } = decision
      const more = leftOut > 0 ? { leftOut } : {}
      leftOut = 0
      const message = shadowed ? 'would be refused' : 'refused'
      const why = { rule, cost, remaining, retryAfterMs, source }
      logger.info({ route, tier, key, ...why, ...more }, message)
    },
  }
}
