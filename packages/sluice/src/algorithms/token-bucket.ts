import { defineAlgorithm } from '../core/algorithm.ts'
import { MOST_UNITS } from '../core/cost.ts'
import { checkWhole } from '../core/options.ts'
import { defineRule, type Rule, type RuleOptions } from '../core/rule.ts'
import { freshTime } from './fresh-time.ts'

/** What `tokenBucket` and `gcra` take. */
export interface BurstOptions extends RuleOptions {
  /** How many units a rested key may spend at once: 1 to 10,000,000. Default: the limit. */
  readonly burst?: number
}

const algorithm = defineAlgorithm({ name: 'token-bucket', ...freshTime })

/**
 * tokenBucket lets a rested key spend `burst` units at once and gives back `limit` units per
 * `per`, continuously: at most burst + limit · t / per units in any interval t. A key starts full.
 */
export function tokenBucket(options: BurstOptions): Rule {
  return defineRule(algorithm, options, { capacity: burstOf(options), extra: ['burst'] })
}

/** burstOf is the checked burst, or undefined where it is left out. */
export function burstOf(options: BurstOptions): number | undefined {
  return options?.burst === undefined
    ? undefined
    : checkWhole('burst', options.burst, 1, MOST_UNITS, 'SLUICE_RULE_BURST')
}
