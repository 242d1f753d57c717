import { expect, it } from 'vitest'
import {
  createLimiter,
  leakyBucket,
  type Rule,
  slidingWindowLog,
  throttle,
  tokenBucket,
} from '../index.ts'
import { manualClock } from '../testing/index.ts'

const ten = { limit: 10, per: '1s' } as const

/** The most calls that begin within a second, [t, t + 1 s), of 35 that are made after a while. */
async function mostInASecond(rule: Rule): Promise<number> {
  const clock = manualClock()
  const limiter = createLimiter(rule, { clock })
  const timesUs: number[] = []
  const call = throttle(() => timesUs.push(clock.nowUs()), { limiter })
  const all = Array.from({ length: 35 }, () => call())
  while (timesUs.length < 35) {
    for (let i = 0; i < 10; i += 1) await new Promise((resolve) => setImmediate(resolve))
    clock.advance(50)
  }
  await Promise.all(all)
  const within = (startUs: number) =>
    timesUs.filter((us) => us >= startUs && us < startUs + 1_000_000).length
  return Math.max(...timesUs.map(within))
}

it.each<[string, Rule, number]>([
  ['slidingWindowLog', slidingWindowLog(ten), 10],
  ['leakyBucket', leakyBucket(ten), 10],
  ['tokenBucket with a burst of 1', tokenBucket({ ...ten, burst: 1 }), 10],
  // Its burst, and what comes back meanwhile: the guide says so.
  ['tokenBucket', tokenBucket(ten), 19],
])('%s begins so many calls within a second', async (_name, rule, most) =>
  expect(await mostInASecond(rule)).toBe(most),
)
