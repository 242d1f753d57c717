import type { Rule } from '../core/rule.ts'
import type { Hold, Meter } from './meters.ts'

/** Slots are a quarter of the hold. A hold counts in the slot in which it began and in four more. */
const QUARTERS = 4

/**
 * holdMeter is the meter of a concurrency rule: a list of holds, each with the instant at which its
 * units come back unless they are released earlier.
 */
export function holdMeter(rule: Rule, holds: readonly Hold[] = [], latestUs = 0): Meter {
  const slotUs = () => Math.ceil(rule.perUs / QUARTERS)
  const slotAt = (us: number) => us - (us % slotUs())
  /** If time has stepped back, the slot of the latest hold stands for now. */
  const counting = (us: number) => holds.filter(({ untilUs }) => Math.max(us, latestUs) < untilUs)
  const heldAt = (us: number) => counting(us).reduce((sum, { units }) => sum + units, 0)

  function hold(units: number, nowUs: number): Hold {
    latestUs = Math.max(latestUs, slotAt(nowUs))
    const made = { units, untilUs: latestUs + (QUARTERS + 1) * slotUs() }
    holds = [...counting(nowUs), made]
    return made
  }

  return {
    passes: (units, us) => heldAt(us) + units <= rule.limit,
    isFresh: (us) => holds.every(({ untilUs }) => untilUs <= us),
    spend: (units, nowUs) => void hold(units, nowUs),
    // Only a release gives units back.
    refund() {},
    hold,
    holds: (one, nowUs) => holds.includes(one) && nowUs < one.untilUs,
    release(one) {
      holds = holds.filter((other) => other !== one)
    },
    carry(to, nowUs) {
      const held = counting(nowUs)
      const from = rule
      const fromUs = Math.max(nowUs, latestUs)
      rule = to
      if (from.perUs === to.perUs) return
      // A hold keeps its end, rounded up to a slot of the new rule, and lasts at most the new hold.
      // Its permit can no longer release it.
      latestUs = slotAt(fromUs)
      const [first, last] = [latestUs + slotUs(), latestUs + (QUARTERS + 1) * slotUs()]
      holds = held.map(({ units, untilUs }) => {
        const endUs = Math.ceil(untilUs / slotUs()) * slotUs()
        return { units, untilUs: Math.min(Math.max(endUs, first), last) }
      })
    },
    copy: () => holdMeter(rule, holds, latestUs),
  }
}
