import { lua as calendarWindow } from './calendar-window.ts'
import { lua as concurrency } from './concurrency.ts'
import { lua as fixedWindow } from './fixed-window.ts'
import { bucketLua, leakyBucketLua } from './fresh-time.ts'
import { lua as penalty } from './penalty.ts'
import { lua as slidingWindowCounter } from './sliding-window-counter.ts'
import { lua as slidingWindowLog } from './sliding-window-log.ts'

/**
 * ownTwins maps the `lua` names of built-in algorithms to their Lua twins. Algorithms carry only the
 * name, so that only programs that use Redis bundle the scripts.
 */
export const ownTwins: ReadonlyMap<string, string> = new Map([
  ['bucket', bucketLua],
  ['calendar-window', calendarWindow],
  ['concurrency', concurrency],
  ['fixed-window', fixedWindow],
  ['leaky-bucket', leakyBucketLua],
  ['penalty', penalty],
  ['sliding-window-counter', slidingWindowCounter],
  ['sliding-window-log', slidingWindowLog],
])
