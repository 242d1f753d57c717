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
  /** Makes all its holds begin now, or none if one of them has ended. */
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
      const own = counters.of(call, nowUs).filter(({ rule }) => holds.has(rule.name))
      const isHeld = own.every(({ rule, meter }) => meter.holds!(holds.get(rule.name)!, nowUs))
      if (!isHeld) return false
      for (const { rule, meter } of own) meter.release!(holds.get(rule.name)!)
      const begun = new Map<string, Hold>()
      spendAll(own, nowUs, begun)
      holds = begun
      return true
    },
  }
}
