import { newReadings } from '../../core/decision.ts'
import type { Rule } from '../../core/rule.ts'
import { labelOf, ownerOf } from '../../rows/codec.ts'
import type { RuleSet } from '../store.ts'
import type { View } from './view.ts'

/** RedisRules is a rule set that knows which of its rules keep a state in Redis. */
export interface RedisRules extends RuleSet {
  readonly stateful: readonly Rule[]
  /** The place of each stateful rule among all. */
  readonly places: readonly number[]
  /** What the lines of the stateful rules end with, and whose cells they have. */
  readonly labels: readonly string[]
  readonly owners: readonly string[]
  /** The one stateful rule, where there is just one and the script for a single check can hold it. */
  readonly only: Rule | undefined
  /** The set as the script for any calls takes it, and the rule as that for a single check does. */
  readonly json: string
  readonly words: readonly string[]
  /** Where the states of a key are read into; the next key's go there, too. */
  readonly view: View
}

/** redisRules makes rules ready. */
export function redisRules(rules: readonly Rule[]): RedisRules {
  const places = rules.flatMap((rule, i) => (rule.algorithm.cells(rule) > 0 ? [i] : []))
  const stateful = places.map((i) => rules[i])
  const readings = newReadings(rules.length)
  readings.remaining.fill(Number.POSITIVE_INFINITY)
  const labels = stateful.map(labelOf)
  const owners = labels.map(ownerOf)
  const only = stateful.length === 1 && fitsCheck(stateful[0]) ? stateful[0] : undefined
  return {
    rules: [...rules],
    capacity: Math.min(...rules.map((rule) => rule.capacity)),
    delays: rules.some((rule) => rule.algorithm.delays),
    readings,
    stateful,
    places,
    labels,
    owners,
    only,
    json: JSON.stringify(stateful.map((rule, i) => told(rule, labels[i]))),
    words: only ? wordsOf(only) : [],
    view: { states: stateful.map(() => new Float64Array(3)), blockUs: 0 },
  }
}

/** The most cells of the script for a single check. */
const CHECK_CELLS = 3

function fitsCheck(rule: Rule): boolean {
  return !rule.algorithm.grows && rule.algorithm.cells(rule) <= CHECK_CELLS
}

/** Its own parameters as a twin knows them: `per` is microseconds there, so the word is `period`. */
function paramsOf({ params }: Rule): object {
  const { per: period, ...own } = params
  return period === undefined ? own : { period, ...own }
}

/** A rule as Lua gets it. */
function told(rule: Rule, label: string): object {
  return {
    ...paramsOf(rule),
    algorithm: rule.algorithm.name,
    label,
    cells: rule.algorithm.grows ? 0 : rule.algorithm.cells(rule),
    limit: rule.limit,
    per: rule.perUs,
    capacity: rule.capacity,
    gap: rule.gapUs,
    rest: rule.gapRest,
    parts: rule.gapParts,
    full: rule.fullUs,
    full_rest: rule.fullRest,
  }
}

/** The same as words: its figures, then each parameter's name, and its value after an n or a w. */
function wordsOf(rule: Rule): string[] {
  const { limit, perUs, capacity, gapUs, gapRest, gapParts, fullUs, fullRest } = rule
  const figures = [limit, perUs, capacity, gapUs, gapRest, gapParts, fullUs, fullRest]
  const params = Object.entries(paramsOf(rule)).flatMap(([name, value]) => [
    name,
    typeof value === 'number' ? `n${value}` : `w${value}`,
  ])
  return [...figures.map(String), ...params]
}
