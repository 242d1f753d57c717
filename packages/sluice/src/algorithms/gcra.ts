import { completeAlgorithm } from '../core/algorithm.ts'
import { ruleFactory } from '../core/rule.ts'
import { bucket } from './fresh-time.ts'
import type { BurstOptions } from './token-bucket.ts'

/**
 * gcra is the generic cell rate algorithm. It makes the same decisions as `tokenBucket` with the
 * same parameters. Its state is the theoretical arrival time: the exact instant at which the key is
 * full.
 */
export const gcra = ruleFactory<BurstOptions, 'gcra'>(
  completeAlgorithm({ name: 'gcra', code: 'G', ...bucket }),
)
