import type { Later } from '../core/later.ts'
import type { Rule } from '../core/rule.ts'
import type { LimiterCost, LimiterKey } from '../limiter/key-types.ts'
import type { Policy } from '../limiter/policy.ts'
import type { AnyLimiter } from './request-key.ts'

/** AnyRules is what the option `rules` may be. Types of keys and costs follow from the rules given. */
export type AnyRules = Rule | readonly Rule[]

/** Limits are the options of which exactly one is given. */
export type Limits<Rules extends AnyRules = AnyRules> =
  | { readonly limiter: AnyLimiter; readonly rules?: undefined; readonly policy?: undefined }
  | {
      readonly rules: Rules
      readonly limiter?: undefined
      readonly policy?: undefined
      /** Tiers are those of a policy. */
      readonly tier?: undefined
    }
  | { readonly policy: Policy<unknown>; readonly limiter?: undefined; readonly rules?: undefined }

/** The address is filled in where a key leaves it out. */
type AddressOptional<Key> = Key extends { readonly address: infer Address }
  ? Omit<Key, 'address'> & { readonly address?: Address }
  : Key

/** Without another field than the address there need not be a key. */
type GivenKey<Key> = Key extends string
  ? Key | undefined | null
  : object extends Key
    ? Key | undefined | null
    : Key

/** GivenKeyOf is what the option `key` gives: a text, or an object with the fields that the rules count. */
export type GivenKeyOf<Rules extends AnyRules> = GivenKey<AddressOptional<LimiterKey<Rules>>>

type ByRule<Rules extends AnyRules> = Exclude<LimiterCost<Rules>, number>

/** CostOf is the option `cost`: a cost, or functions of the request that give it or its parts. */
export type CostOf<Request, Rules extends AnyRules> =
  | number
  | ((request: Request) => Later<LimiterCost<Rules>>)
  | {
      readonly [Name in keyof ByRule<Rules>]: number | ((request: Request) => Later<number>)
    }

/** FinalCostOf is what the option `finalCost` gives: rules that it leaves out keep the estimate. */
export type FinalCostOf<Rules extends AnyRules> = number | Partial<ByRule<Rules>>
