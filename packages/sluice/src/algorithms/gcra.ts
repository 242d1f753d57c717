import { completeAlgorithm } from '../core/algorithm.ts'
import { ruleFactory } from '../core/rule.ts'
import { bucket } from './fresh-time.ts'
import type { BurstOptions } from './token-bucket.ts'

/**
 * gcra is the generic cell rate algorithm: the same decisions as the token bucket of the same
 * parameters, known by its other name and told by when a cell conforms. Its state is the exact time
 * of freshness (the theoretical arrival time).
 */
export const gcra = ruleFactory<BurstOptions, 'gcra'>(
  completeAlgorithm({ name: 'gcra', code: 'G', ...bucket }),
)
