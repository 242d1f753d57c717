import type { Rule } from '../core/rule.ts'
import { sharedMap } from '../core/shared-map.ts'
import type { CallOptions } from './verbs.ts'

/** RulesFor gives the rules that a limiter holds a key to. */
export type RulesFor = (key: string, options: CallOptions | undefined) => readonly Rule[]

const known = sharedMap<object, RulesFor>('limiter rules')

/** noteRules remembers by which rules a limiter decides. */
export function noteRules<L extends object>(limiter: L, rulesFor: RulesFor): L {
  known.set(limiter, rulesFor)
  return limiter
}

/** rulesOf tells by which rules a limiter decides; of one that is not ours, none are known. */
export function rulesOf(limiter: object): RulesFor {
  return known.get(limiter) ?? (() => [])
}
