import { setTimeout as sleep } from 'node:timers/promises'
import type { Decision } from 'sluice'
import type { Fault } from './chaos.ts'
import { lost, stopped } from './faults.ts'
import type { Checker, RunOptions } from './fleet.ts'

/** ChaosTwin is a limiter, or a fault, with a bug that the checker must notice. */
export interface ChaosTwin {
  readonly bug: string
  readonly fault: Fault
  readonly options?: RunOptions
  /** The expected complaint of the checker. */
  readonly complaint: RegExp
  /** Other complaints that the bug may cause. */
  readonly besides?: RegExp
}

/** Changes decisions that were made without Redis. */
function instead(change: (decision: Decision) => Decision | Promise<Decision>): RunOptions {
  const wrap = (limiter: Checker): Checker => ({
    async check(key) {
      const decision = await limiter.check(key)
      return decision.source === 'store' ? decision : change(decision)
    },
  })
  return { wrap }
}

/** chaosTwins have known bugs of other limiters. */
export const chaosTwins: readonly ChaosTwin[] = [
  {
    bug: 'a limiter waits for Redis as long as it takes',
    fault: stopped,
    options: { timeoutMs: 60_000 },
    complaint: /a call took/,
    besides: /never showed|was not called|median|local admitted/,
  },
  {
    bug: 'a limiter throws when Redis fails',
    fault: stopped,
    options: instead(() => Promise.reject(new Error('Redis is away'))),
    complaint: /calls threw/,
    besides: /local admitted/,
  },
  {
    bug: 'a limiter admits everything while Redis is away',
    fault: stopped,
    options: instead((decision) => ({ ...decision, allowed: true })),
    complaint: /local admitted/,
  },
  {
    bug: 'a limiter admits nothing while Redis is away',
    fault: stopped,
    options: instead((decision) => ({ ...decision, allowed: false })),
    complaint: /local admitted/,
  },
  {
    bug: 'each node of a fleet takes the whole rule for its share',
    fault: stopped,
    options: { fleetSize: 1 },
    complaint: /local admitted/,
  },
  {
    bug: 'a limiter follows another policy than it was told',
    fault: stopped,
    options: instead((decision) => ({ ...decision, source: 'open' })),
    complaint: /the policy is local, and open decided/,
    besides: /local admitted/,
  },
  {
    bug: 'a limiter refuses now and then though it is to be open',
    fault: stopped,
    options: {
      onStoreFailure: 'open',
      ...instead((decision) => ({ ...decision, allowed: Math.random() < 0.9 })),
    },
    complaint: /decisions are not open/,
  },
  {
    bug: 'a limiter never asks Redis again',
    fault: stopped,
    options: { wrap: forGood },
    complaint: /decided again/,
    besides: /did not decide after/,
  },
  {
    bug: 'a limiter waits a little for Redis each time, though it does not answer',
    fault: stopped,
    options: instead((decision) => sleep(20, decision)),
    complaint: /median/,
  },
  {
    bug: 'a fault never happens',
    fault: { ...stopped, begin: () => {}, end: () => {} },
    complaint: /never showed/,
    besides: /was not called|median|local admitted/,
  },
  {
    bug: 'a fault never ends',
    fault: { ...stopped, end: () => {} },
    complaint: /did not decide after/,
    besides: /decided again|onRecovered/,
  },
  {
    bug: 'data are lost that were to be kept',
    fault: { ...lost, losesData: false },
    complaint: /store admitted/,
  },
]

/** Wraps a limiter so that it never uses Redis again after its first decision without it. */
function forGood(limiter: Checker): Checker {
  let isGone = false
  return {
    async check(key) {
      const decision = await limiter.check(key)
      isGone ||= decision.source !== 'store'
      if (!isGone || decision.source !== 'store') return decision
      return { ...decision, source: 'local', allowed: false }
    },
  }
}
