import { completeAlgorithm } from '../core/algorithm.ts'
import { type RuleOptions, ruleFactory } from '../core/rule.ts'
import { bucket } from './fresh-time.ts'

/** BurstOptions are the options of `tokenBucket` and `gcra`. */
export interface BurstOptions extends RuleOptions {
  /** Units that a full key may spend at once: 1 to 10^12. Default: the limit. */
  readonly burst?: number
}

/**
 * tokenBucket lets a full key spend `burst` units at once and refills `limit` units per `per`,
 * continuously. It admits at most burst + limit · t / per units in any interval t. A key starts
 * full.
 */
export const tokenBucket = ruleFactory<BurstOptions, 'token-bucket'>(
  completeAlgorithm({ name: 'token-bucket', code: 'T', ...bucket }),
)
