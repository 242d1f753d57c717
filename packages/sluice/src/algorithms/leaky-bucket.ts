import { completeAlgorithm } from '../core/algorithm.ts'
import { wholeParam } from '../core/params.ts'
import { type RuleOptions, ruleFactory } from '../core/rule.ts'
import { freshTime, lineEndUs } from './fresh-time.ts'

/** What `leakyBucket` takes. */
export interface QueueOptions extends RuleOptions {
  /** How many units may wait for their slot: 0 to 10^12. Default: the limit. */
  readonly queue?: number
}

const algorithm = completeAlgorithm({
  name: 'leaky-bucket',
  code: 'L',
  ...freshTime,
  params: { queue: wholeParam({ code: 'SLUICE_RULE_QUEUE' }) },
  capacity: (_limit, { queue }) => 1 + Number(queue),
  delays: true,
  lua: 'leaky-bucket',
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
export const leakyBucket = ruleFactory<QueueOptions, 'leaky-bucket'>(algorithm)
