import type { Logger } from 'pino'

/** Refused is a refusal that is worth a line. */
export interface Refused {
  readonly route: string
  readonly tier: string
  readonly key: string
  readonly rule: string
  readonly source: string
  readonly shadowed: boolean
}

/** RefusalLog writes refusals down, but never so many that the log is the problem. */
export interface RefusalLog {
  note(refused: Refused): void
}

const WINDOW_MS = 1_000
const MOST_LINES = 10

/**
 * createRefusalLog writes at most ten refusals a second; the next line after that says how many were
 * left out.
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
      const told = leftOut > 0 ? { ...refused, leftOut } : refused
      leftOut = 0
      logger.info(told, refused.shadowed ? 'would be refused' : 'refused')
    },
  }
}
