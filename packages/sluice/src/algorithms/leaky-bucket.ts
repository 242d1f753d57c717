import { MOST_UNITS } from '../cost.ts'
import { checkWhole } from '../options.ts'
import { defineRule, type Rule, type RuleOptions } from '../rule.ts'
import { defineAlgorithm } from './algorithm.ts'
import { freshTime } from './fresh-time.ts'

/** What `leakyBucket` takes. */
export interface QueueOptions extends RuleOptions {
  /** How many units may wait for their slot: 0 to 9,999,999. Default: the limit. */
  readonly queue?: number
}

const algorithm = defineAlgorithm({
  name: 'leaky-bucket',
  ...freshTime,
  delays: true,
  delayUs(cells, at, rule, nowUs) {
    const slotUs = freshTime.freshAtUs(cells, at, rule)
    return slotUs > nowUs ? slotUs - nowUs : 0
  },
  // Slots that were handed out stay handed out: others already queue behind them.
  refund() {},
})

/**
 * leakyBucket spaces admissions evenly, one unit per perUs / limit. An admitted request carries
 * `delayMs`, the time until its first unit's slot; a cost takes as many slots. It is refused when
 * its last slot would lie more than `queue` gaps away, so capacity is 1 + queue.
 */
export function leakyBucket(options: QueueOptions): Rule {
  const queue =
    options?.queue === undefined
      ? Math.min(Number(options?.limit), MOST_UNITS - 1)
      : checkWhole('queue', options.queue, 0, MOST_UNITS - 1, 'SLUICE_RULE_QUEUE')
  return defineRule(algorithm, options, { capacity: 1 + queue, extra: ['queue'] })
}
