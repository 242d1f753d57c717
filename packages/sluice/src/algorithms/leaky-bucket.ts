import { completeAlgorithm } from '../core/algorithm.ts'
import { wholeParam } from '../core/params.ts'
import { type RuleOptions, ruleFactory } from '../core/rule.ts'
import { freshTime, lineEndUs } from './fresh-time.ts'

/** QueueOptions are the options of `leakyBucket`. */
export interface QueueOptions extends RuleOptions {
  /** Units that may wait for their slot: 0 to 10^12. Default: the limit. */
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
  // The first unit gets the slot after those of all units ahead of it.
  lineUs: (rule, _waitUs, resetUs, _remaining, ahead) =>
    Math.max(0, lineEndUs(rule, resetUs, ahead)),
  // An assigned slot cannot be given back: later requests already have the slots after it.
  refund() {},
})

/**
 * leakyBucket spaces admissions evenly: one slot every `per` / `limit`. A request of cost n takes n
 * slots. An admitted request carries `delayMs`, the time until its first slot. A request is refused
 * if its last slot would lie more than `queue` gaps away, so the capacity is 1 + queue.
 */
export const leakyBucket = ruleFactory<QueueOptions, 'leaky-bucket'>(algorithm)
