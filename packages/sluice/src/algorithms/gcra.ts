import { defineAlgorithm } from '../core/algorithm.ts'
import { defineRule, type Rule } from '../core/rule.ts'
import { freshTime } from './fresh-time.ts'
import { type BurstOptions, burstOf } from './token-bucket.ts'

const algorithm = defineAlgorithm({ name: 'gcra', ...freshTime })

/**
 * gcra is the generic cell rate algorithm: the same decisions as the token bucket of the same
 * figures, known by its other name and told by when a cell conforms. Its state is the exact time
 * of freshness (the theoretical arrival time).
 */
export function gcra(options: BurstOptions): Rule {
  return defineRule(algorithm, options, { capacity: burstOf(options), extra: ['burst'] })
}
