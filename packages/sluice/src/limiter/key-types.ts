import type { Rule } from '../core/rule.ts'
import type { Policy } from './policy.ts'

/**
 * KeyFields is a key with fields. Each rule counts one of them. `null` switches a field's rules
 * off.
 */
export type KeyFields = Readonly<Record<string, string | null>>

/** CostByRule is a cost with units per rule name. */
export type CostByRule = Readonly<Record<string, number>>

type RuleOf<Rules> = Rules extends readonly (infer R)[] ? R : Rules
type KeyBy<By> = [By] extends [undefined]
  ? string
  : string extends By
    ? string | KeyFields
    : { readonly [Field in Extract<Exclude<By, 'global'>, string>]: string | null }

/** LimiterKey is the key type of a limiter: an object if its rules have `by`, else a string. */
export type LimiterKey<Rules> = [Rules] extends [Policy<infer Key, string>]
  ? Key
  : RuleOf<Exclude<Rules, Policy<unknown>>> extends Rule<infer By>
    ? KeyBy<By>
    : never

/** LimiterTier is the type of tier names of a limiter's policy; `never` without a policy. */
export type LimiterTier<Rules> = [Rules] extends [Policy<unknown, infer Tier>]
  ? Tier
  : Policy<unknown> extends Rules
    ? string
    : never

/** LimiterCost is the cost type of a limiter: units for all rules, or units per rule name. */
export type LimiterCost<Rules> = Rules extends Rule
  ? number
  : RuleOf<Rules> extends Rule<infer _By, infer Name>
    ? number | { readonly [Each in Name]: number }
    : number | CostByRule
