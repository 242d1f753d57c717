import type { Later } from '../core/later.ts'
import type { Rule } from '../core/rule.ts'
import type { LimiterCost, LimiterKey } from '../limiter/key-types.ts'
import type { Policy } from '../limiter/policy.ts'
import type { AnyLimiter } from './request-key.ts'

/** AnyRules is the type of the option `rules`. The types of keys and costs follow from the rules. */
export type AnyRules = Rule | readonly Rule[]

/** Limits are the options of which exactly one must be given. */
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

/** Makes the address optional, since it is filled in. */
type AddressOptional<Key> = Key extends { readonly address: infer Address }
  ? Omit<Key, 'address'> & { readonly address?: Address }
  : Key

/** Makes the key optional if the address is its only field. */
type GivenKey<Key> = Key extends string
  ? Key | undefined | null
  : object extends Key
    ? Key | undefined | null
    : Key

/**
 * GivenKeyOf is the result type of the option `key`: a string, or an object with the rules' fields.
 */
export type GivenKeyOf<Rules extends AnyRules> = GivenKey<AddressOptional<LimiterKey<Rules>>>

type ByRule<Rules extends AnyRules> = Exclude<LimiterCost<Rules>, number>

/**
 * CostOf is the type of the option `cost`: a cost, or functions of the request that return it or
 * its parts.
 */
export type CostOf<Request, Rules extends AnyRules> =
  | number
  | ((request: Request) => Later<LimiterCost<Rules>>)
  | {
      readonly [Name in keyof ByRule<Rules>]: number | ((request: Request) => Later<number>)
    }

/** FinalCostOf is the result type of the option `finalCost`. Missing rules keep the estimate. */
export type FinalCostOf<Rules extends AnyRules> = number | Partial<ByRule<Rules>>
