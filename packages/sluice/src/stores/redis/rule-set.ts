import { newFigures } from '../../decision.ts'
import type { Rule } from '../../rule.ts'
import type { RuleSet } from '../store.ts'
import { escapeName } from './names.ts'

/** RedisRules is a rule set that knows which of its rules keep a state in Redis. */
export interface RedisRules extends RuleSet {
  readonly stateful: readonly Rule[]
  /** The place of each stateful rule among all. */
  readonly places: readonly number[]
  /** What the names of the states end with. */
  readonly endings: readonly string[]
}

export function redisRules(rules: readonly Rule[]): RedisRules {
  const places = rules.flatMap((rule, i) => (rule.algorithm.cells(rule) > 0 ? [i] : []))
  const stateful = places.map((i) => rules[i])
  return {
    rules: [...rules],
    capacity: Math.min(...rules.map((rule) => rule.capacity)),
    delays: rules.some((rule) => rule.algorithm.delays),
    figures: newFigures(rules.length),
    stateful,
    places,
    endings: stateful.map((rule) => escapeName(rule.name)),
  }
}
