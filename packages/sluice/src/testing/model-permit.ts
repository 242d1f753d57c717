import type { Hold } from './meters.ts'
import {
  type Counters,
  type ModelCall,
  type ModelCost,
  spendAll,
  unitsOf,
} from './model-counters.ts'

/** ModelPermit is a permit of the model. Its first end counts, and later ones do nothing. */
export interface ModelPermit {
  /** The instants at which its holds end. */
  endsUs(): readonly number[]
  release(nowUs: number): void
  settle(actual: ModelCost, nowUs: number): void
  cancel(nowUs: number): void
  /**
   * Makes its holds begin now, in the order of the rules. False if one has ended: then the permit gives back
   * none of them any more.
   */
  extend(nowUs: number): boolean
}

/**
 * modelPermit is a permit for what a call has spent at `spentUs`, and for its holds by the names of their
 * rules. It looks for its meters again whenever it is used, since a reset replaces them.
 */
export function modelPermit(
  counters: Counters,
  call: ModelCall,
  spentUs: number,
  taken: ReadonlyMap<string, Hold>,
): ModelPermit {
  let isOpen = true
  let isLost = false
  let holds = taken

  function end(actual: ModelCost | undefined, nowUs: number): void {
    if (!isOpen) return
    isOpen = false
    for (const { rule, meter, units } of counters.of(call, nowUs)) {
      const hold = holds.get(rule.name)
      if (hold && meter.holds!(hold, nowUs)) meter.release!(hold)
      if (meter.hold || actual === undefined) continue
      const more = unitsOf(rule, actual) - units
      if (more > 0) meter.spend(more, nowUs)
      else if (more < 0) meter.refund(-more, nowUs, spentUs)
    }
  }

  return {
    endsUs: () => [...holds.values()].map(({ untilUs }) => untilUs),
    release: (nowUs) => end(undefined, nowUs),
    settle: end,
    cancel: (nowUs) => end(0, nowUs),
    extend(nowUs) {
      if (!isOpen) return false
      const extended = new Map<string, Hold>()
      for (const counter of counters.of(call, nowUs)) {
        const { rule, meter } = counter
        const hold = holds.get(rule.name)
        if (!hold || isLost) continue
        isLost = !meter.holds!(hold, nowUs)
        if (isLost) continue
        meter.release!(hold)
        spendAll([counter], nowUs, extended)
      }
      holds = isLost ? new Map() : extended
      return !isLost
    },
  }
}
