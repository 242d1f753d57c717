import { type Cost, costsAny } from '../../core/cost.ts'
import type { RuleDecision } from '../../core/decision.ts'
import type { FieldKey } from '../../core/key.ts'
import type { Table } from '../store.ts'
import { costIn, type JointDecider, type JointSet, noteHeld, summed } from './joint-set.ts'

/** decideExactly decides over tables that no other thread changes: asks all, then spends from all. */
export function decideExactly(tables: readonly Table[]): JointDecider {
  function ask(
    { parts }: JointSet,
    keys: FieldKey,
    cost: Cost,
    spend: boolean,
    nowUs: number,
  ): boolean {
    let passes = true
    for (let i = 0; i < parts.length; i += 1) {
      const { field, set, places } = parts[i]
      const waitUs = tables[field].ask!(set, keys[field]!, costIn(cost, places), spend, nowUs)
      if (waitUs > 0) passes = false
    }
    return passes
  }

  function askAndTake(
    set: JointSet,
    keys: FieldKey,
    cost: Cost,
    spend: boolean,
    nowUs: number,
  ): boolean {
    const passes = ask(set, keys, cost, spend, nowUs)
    if (!passes || !spend || !costsAny(cost)) return passes
    for (let i = 0; i < set.parts.length; i += 1) {
      const { field, set: own, places } = set.parts[i]
      tables[field].take!(own, keys[field]!, costIn(cost, places), nowUs)
    }
    if (set.holds) noteHeld(set)
    return passes
  }

  return {
    allow: (set, keys, cost, nowUs) => askAndTake(set, keys, cost, true, nowUs),
    decide(set, keys, cost, spend, nowUs) {
      const { parts } = set
      const passes = askAndTake(set, keys, cost, spend, nowUs)
      const each: RuleDecision[] = []
      let blockedUs = 0
      for (let i = 0; i < parts.length; i += 1) {
        const { field, set: own, places } = parts[i]
        const units = costIn(cost, places)
        const us = tables[field].tell!(own, keys[field]!, units, passes, nowUs, each, places)
        if (us > blockedUs) blockedUs = us
      }
      return summed(set, cost, each, passes, blockedUs)
    },
  }
}
