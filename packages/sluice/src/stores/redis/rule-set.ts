import { newFigures } from '../../core/decision.ts'
import type { Rule } from '../../core/rule.ts'
import type { RuleSet } from '../store.ts'
import type { View } from './view.ts'

/** RedisRules is a rule set that knows which of its rules keep a state in Redis. */
export interface RedisRules extends RuleSet {
  readonly stateful: readonly Rule[]
  /** The place of each stateful rule among all. */
  readonly places: readonly number[]
  /** What the names of the states end with. */
  readonly endings: readonly string[]
  /** The one stateful rule, where there is one and its state is an instant of freshness. */
  readonly instant: Rule | undefined
  /** Where the states of a key are read into; the next key's go there, too. */
  readonly view: View
}

/** redisRules makes rules ready; `endingOf` is what the names of a rule's states end with. */
export function redisRules(rules: readonly Rule[], endingOf: (rule: Rule) => string): RedisRules {
  const places = rules.flatMap((rule, i) => (rule.algorithm.cells(rule) > 0 ? [i] : []))
  const stateful = places.map((i) => rules[i])
  const figures = newFigures(rules.length)
  figures.remaining.fill(Number.POSITIVE_INFINITY)
  const [only, ...others] = stateful
  const isInstantOnly = only && others.length === 0 && only.gapParts === 1
  return {
    rules: [...rules],
    capacity: Math.min(...rules.map((rule) => rule.capacity)),
    delays: rules.some((rule) => rule.algorithm.delays),
    figures,
    stateful,
    places,
    endings: stateful.map(endingOf),
    instant: isInstantOnly && only.algorithm.instant ? only : undefined,
    view: { states: stateful.map(() => new Float64Array(3)), blockUs: 0 },
  }
}

/** setJson is a set as the script takes it, with the numbers of its rules' figures. */
export function setJson({ stateful }: RedisRules, ids: readonly string[]): string {
  return JSON.stringify(
    stateful.map((rule, i) => ({
      ...rule.params,
      algorithm: rule.algorithm.name,
      id: ids[i],
      cells: rule.algorithm.grows ? 0 : rule.algorithm.cells(rule),
      limit: rule.limit,
      per: rule.perUs,
      capacity: rule.capacity,
      gap: rule.gapUs,
      rest: rule.gapRest,
      parts: rule.gapParts,
      full: rule.fullUs,
      full_rest: rule.fullRest,
    })),
  )
}
