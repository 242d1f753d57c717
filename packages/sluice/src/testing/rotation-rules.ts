import { calendarWindow } from '../algorithms/calendar-window.ts'
import { fixedWindow } from '../algorithms/fixed-window.ts'
import { gcra } from '../algorithms/gcra.ts'
import { leakyBucket } from '../algorithms/leaky-bucket.ts'
import { slidingWindowCounter } from '../algorithms/sliding-window-counter.ts'
import { slidingWindowLog } from '../algorithms/sliding-window-log.ts'
import { tokenBucket } from '../algorithms/token-bucket.ts'

/** rotationRules are so tight that tests notice a key whose units are forgotten. */
export const rotationRules = [
  tokenBucket({ limit: 5, per: '3s' }),
  gcra({ limit: 7, per: '5s', burst: 4 }),
  leakyBucket({ limit: 5, per: '3s', queue: 4 }),
  fixedWindow({ limit: 5, per: '4s', align: 'clock' }),
  slidingWindowCounter({ limit: 5, per: '4s' }),
  slidingWindowLog({ limit: 5, per: '4s' }),
  calendarWindow({ limit: 5, per: 'hour', zone: 'Asia/Kathmandu' }),
]

/** slowerRules are the same algorithms with slower rates, for tiers between which keys switch. */
export const slowerRules = [
  tokenBucket({ limit: 5, per: '30s' }),
  gcra({ limit: 3, per: '25s', burst: 6 }),
  leakyBucket({ limit: 5, per: '30s', queue: 4 }),
  fixedWindow({ limit: 6, per: '15s', align: 'clock' }),
  slidingWindowCounter({ limit: 6, per: '15s' }),
  slidingWindowLog({ limit: 6, per: '15s' }),
  calendarWindow({ limit: 6, per: 'day', zone: 'America/New_York' }),
]
