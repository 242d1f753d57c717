import type { Hold } from './meters.ts'
import {
  type Counters,
  type ModelCall,
  type ModelCost,
  spendAll,
  unitsOf,
} from './model-counters.ts'

/**
 * ModelPermit is a permit of the model. The first call that ends it counts; later ones do nothing.
 */
export interface ModelPermit {
  /** Returns the instants at which its holds end. */
  endsUs(): readonly number[]
  release(nowUs: number): void
  settle(actual: ModelCost, nowUs: number): void
  cancel(nowUs: number): void
  /**
   * Restarts its holds now, in the order of the rules. Returns false if one has ended; the permit
   * then no longer releases any of them.
   */
  extend(nowUs: number): boolean
}

/**
 * modelPermit creates the permit of a call with its spends at `spentUs` and its holds by rule name.
 * It looks up its meters at every use, since a reset replaces them.
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
