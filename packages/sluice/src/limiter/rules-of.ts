import type { Rule } from '../core/rule.ts'
import { sharedMap } from '../core/shared-map.ts'
import type { CallOptions } from './verbs.ts'

/** RulesFor returns the rules of a limiter for a key. */
export type RulesFor = (key: string, options: CallOptions | undefined) => readonly Rule[]

const known = sharedMap<object, RulesFor>('limiter rules')

/** noteRules registers the rules of a limiter, for `rulesOf`. */
export function noteRules<L extends object>(limiter: L, rulesFor: RulesFor): L {
  known.set(limiter, rulesFor)
  return limiter
}

/** rulesOf returns the rules of a limiter; none for limiters that are not from this library. */
export function rulesOf(limiter: object): RulesFor {
  return known.get(limiter) ?? (() => [])
}
