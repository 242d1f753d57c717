import type { Cost } from '../../core/cost.ts'
import type { Decision } from '../../core/decision.ts'
import type { FieldKey } from '../../core/key.ts'
import type { Table } from '../store.ts'
import {
  costIn,
  type JointDecider,
  type JointPart,
  type JointSet,
  joined,
  noteHeld,
} from './joint-set.ts'

/**
 * decideInTurns decides over tables that other threads change meanwhile. It peeks at all, then
 * spends from one after another. If one refuses, it gives back what it spent from the others.
 */
export function decideInTurns(tables: readonly Table[]): JointDecider {
  function decideEach(
    { parts }: JointSet,
    keys: FieldKey,
    cost: Cost,
    spend: boolean,
    nowUs: number,
  ): Decision[] {
    const decideOn = ({ field, set, places }: JointPart, spends: boolean) =>
      tables[field].decide(set, keys[field]!, costIn(cost, places), spends, nowUs)
    const seen = parts.map((part) => decideOn(part, false))
    if (!spend) return seen
    if (!seen.every(({ allowed }) => allowed)) {
      // A refusal carries rows over to these rules, as a check of cost 0 does.
      for (const { field, set } of parts) tables[field].allow(set, keys[field]!, 0, nowUs)
      return seen
    }
    const decisions: Decision[] = []
    for (const part of parts) {
      const decision = decideOn(part, true)
      decisions.push(decision)
      if (decision.allowed) continue
      for (const spent of parts.slice(0, decisions.length - 1)) {
        giveBack(spent, keys[spent.field]!, costIn(cost, spent.places), nowUs)
      }
      return parts.map((each) => (each === part ? decision : decideOn(each, false)))
    }
    return decisions
  }

  function giveBack({ field, set }: JointPart, key: string, cost: Cost, nowUs: number): void {
    const held = { cost, spentUs: nowUs, holds: set.held }
    const change = typeof cost === 'number' ? -cost : cost.map((units) => -units)
    tables[field].finish(set, key, held, change, nowUs)
  }

  function decide(set: JointSet, keys: FieldKey, cost: Cost, spend: boolean, nowUs: number) {
    const decisions = decideEach(set, keys, cost, spend, nowUs)
    if (set.holds) noteHeld(set)
    return joined(set, cost, decisions)
  }

  return {
    decide,
    allow: (set, keys, cost, nowUs) => decide(set, keys, cost, true, nowUs).allowed,
  }
}
