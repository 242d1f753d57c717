import { defineAlgorithm } from '../core/algorithm.ts'
import { MOST_UNITS } from '../core/cost.ts'
import { checkWhole } from '../core/options.ts'
import { defineRule, type Rule, type RuleOptions } from '../core/rule.ts'
import { freshTime, lineEndUs } from './fresh-time.ts'

/** What `leakyBucket` takes. */
export interface QueueOptions extends RuleOptions {
  /** How many units may wait for their slot: 0 to 10,000,000. Default: the limit. */
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
  // The first unit's slot is where the line ends, whatever is admitted before.
  lineUs: (rule, _waitUs, resetUs, _remaining, ahead) =>
    Math.max(0, lineEndUs(rule, resetUs, ahead)),
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
      ? options?.limit
      : checkWhole('queue', options.queue, 0, MOST_UNITS, 'SLUICE_RULE_QUEUE')
  const capacity = typeof queue === 'number' ? 1 + queue : undefined
  return defineRule(algorithm, options, { capacity, extra: ['queue'] })
}
