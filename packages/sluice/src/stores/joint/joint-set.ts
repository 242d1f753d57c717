import { type Cost, costAt } from '../../core/cost.ts'
import type { Decision, RuleDecision } from '../../core/decision.ts'
import type { Held } from '../../core/held.ts'
import type { FieldKey } from '../../core/key.ts'
import type { Rule } from '../../core/rule.ts'
import { mixedDecision, sameDecision } from '../../rows/decision-of.ts'
import type { RuleSet } from '../store.ts'

/** JointSet is the rule set of a decision over several fields of a key. */
export interface JointSet extends RuleSet {
  readonly parts: readonly JointPart[]
}

/** JointPart is the rules that count one field of the key. */
export interface JointPart {
  /** The index of the field in the key. */
  readonly field: number
  readonly set: RuleSet
  /** The index of each of its rules among those of the decision. */
  readonly places: readonly number[]
}

/** JointDecider decides over several fields: either all rules admit, or nothing stays spent. */
export interface JointDecider {
  allow(set: JointSet, keys: FieldKey, cost: Cost, nowUs: number): boolean
  decide(set: JointSet, keys: FieldKey, cost: Cost, spend: boolean, nowUs: number): Decision
}

/** jointSet prepares the rules of each field by `use`. Fields in `off` are left out. */
export function jointSet(
  all: readonly Rule[],
  fields: readonly string[],
  off: readonly string[],
  use: (own: readonly Rule[], field: number) => RuleSet,
): JointSet {
  const rules = all.filter(({ algorithm }) => !algorithm.punish)
  const parts = fields.flatMap((name, field): JointPart[] => {
    const isOwn = ({ by = fields[0] }: Rule) => by === name
    // Keep fields without rules: their values may be blocked.
    if (off.includes(name)) return []
    const own = all.filter(isOwn)
    const places = rules.filter(isOwn).map((rule) => rules.indexOf(rule))
    return [{ field, set: use(own, field), places }]
  })
  return {
    rules,
    parts,
    penalty: parts.find(({ set }) => set.penalty)?.set.penalty,
    capacity: Math.min(...rules.map(({ capacity }) => capacity)),
    delays: parts.some(({ set }) => set.delays),
    holds: parts.some(({ set }) => set.holds),
    generation: 0,
    held: new Float64Array(2 * rules.length),
  }
}

/** costIn returns the part of a cost for the rules at the given indexes. */
export function costIn(cost: Cost, places: readonly number[]): Cost {
  if (typeof cost === 'number') return cost
  return places.length === 1 ? cost[places[0]] : places.map((place) => cost[place])
}

/** heldIn returns the holds of a permit for the rules at the given indexes. */
export function heldIn({ cost, spentUs, holds }: Held, places: readonly number[]): Held {
  return {
    cost: places.map((place) => costAt(cost, place)),
    // All rules of a row spend at one instant.
    spentUs: costAt(spentUs, places[0]),
    holds: Float64Array.from(
      { length: 2 * places.length },
      (_, i) => holds[2 * places[i >> 1] + (i & 1)],
    ),
  }
}

/** noteHeld copies the holds of a set's parts into the set. */
export function noteHeld({ parts, held }: JointSet): void {
  for (const { set, places } of parts) {
    for (const [i, place] of places.entries()) {
      held[2 * place] = set.held[2 * i]
      held[2 * place + 1] = set.held[2 * i + 1]
    }
  }
}

/** joined combines the decisions of a set's parts into one. */
export function joined(set: JointSet, cost: Cost, decisions: readonly Decision[]): Decision {
  const { rules, parts } = set
  let allowed = true
  let blockedUs = 0
  for (const decision of decisions) {
    if (!decision.allowed) allowed = false
    if (decision.source === 'blocked') {
      blockedUs = Math.max(blockedUs, Math.round(decision.retryAfterMs * 1_000))
    }
  }
  const each: RuleDecision[] = new Array(rules.length)
  for (let i = 0; i < parts.length; i += 1) {
    const { places } = parts[i]
    for (let j = 0; j < places.length; j += 1) {
      const rule = decisions[i].rules[j]
      each[places[j]] = allowed || rule.delayMs === 0 ? rule : { ...rule, delayMs: 0 }
    }
  }
  return summed(set, cost, each, allowed, blockedUs)
}

/** summed combines the decisions of all rules into one. */
export function summed(
  { rules, holds }: JointSet,
  cost: Cost,
  each: readonly RuleDecision[],
  allowed: boolean,
  blockedUs: number,
): Decision {
  if (holds || typeof cost !== 'number') return mixedDecision(rules, each, allowed, blockedUs)
  return sameDecision(each, allowed, blockedUs)
}
