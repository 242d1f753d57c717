import type { Rule } from '../core/rule.ts'
import type { Policy } from './policy.ts'

/** KeyFields is a key with fields, of which each rule counts one. `null` switches a field's rules off. */
export type KeyFields = Readonly<Record<string, string | null>>

/** CostByRule is a cost with units for each rule, by its name. */
export type CostByRule = Readonly<Record<string, number>>

type RuleOf<Rules> = Rules extends readonly (infer R)[] ? R : Rules
type KeyBy<By> = [By] extends [undefined]
  ? string
  : string extends By
    ? string | KeyFields
    : { readonly [Field in Extract<Exclude<By, 'global'>, string>]: string | null }

/** LimiterKey is what the rules of a limiter count: an object where they have `by`, else a text. */
export type LimiterKey<Rules> = [Rules] extends [Policy<infer Key, string>]
  ? Key
  : RuleOf<Exclude<Rules, Policy<unknown>>> extends Rule<infer By>
    ? KeyBy<By>
    : never

/** LimiterTier is the name of a tier of a limiter's policy; without a policy there is none. */
export type LimiterTier<Rules> = [Rules] extends [Policy<unknown, infer Tier>]
  ? Tier
  : Policy<unknown> extends Rules
    ? string
    : never

/** LimiterCost is what a call may cost: units for all rules, or for each by its name. */
export type LimiterCost<Rules> = Rules extends Rule
  ? number
  : RuleOf<Rules> extends Rule<infer _By, infer Name>
    ? number | { readonly [Each in Name]: number }
    : number | CostByRule
