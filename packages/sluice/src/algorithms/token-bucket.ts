import { completeAlgorithm } from '../core/algorithm.ts'
import { type RuleOptions, ruleFactory } from '../core/rule.ts'
import { bucket } from './fresh-time.ts'

/** What `tokenBucket` and `gcra` take. */
export interface BurstOptions extends RuleOptions {
  /** How many units a rested key may spend at once: 1 to 10^12. Default: the limit. */
  readonly burst?: number
}

/**
 * tokenBucket lets a rested key spend `burst` units at once and gives back `limit` units per
 * `per`, continuously: at most burst + limit · t / per units in any interval t. A key starts full.
 */
export const tokenBucket = ruleFactory<BurstOptions, 'token-bucket'>(
  completeAlgorithm({ name: 'token-bucket', code: 'T', ...bucket }),
)
