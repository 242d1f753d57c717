import { exact } from './exact.ts'
import { fixedWindow } from './fixed-window.ts'
import { freshTime } from './fresh-time.ts'
import { slidingWindowCounter } from './sliding-window-counter.ts'
import { slidingWindowLog } from './sliding-window-log.ts'

/**
 * twins is the Lua text of all algorithms. It fills the table `twins`: by an algorithm's name, the
 * functions wait, spend, refund, remaining, fresh and delay of a state `s` (its cells from 1 on) and
 * a rule `r`, which decide like those of `Algorithm`.
 */
export const twins = `${exact}${freshTime}${fixedWindow}${slidingWindowCounter}${slidingWindowLog}`

/** twinNames are the algorithms that have a twin. */
export const twinNames: ReadonlySet<string> = new Set([
  'token-bucket',
  'gcra',
  'leaky-bucket',
  'fixed-window',
  'sliding-window-counter',
  'sliding-window-log',
])
