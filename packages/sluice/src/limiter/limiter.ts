import type { Rule } from '../core/rule.ts'
import type { LimiterCost, LimiterKey, LimiterTier } from './key-types.ts'
import { checkLimiterOptions, checkNotAsync } from './limiter-options.ts'
import type { Policy } from './policy.ts'
import { createSyncLimiter } from './sync-limiter.ts'
import type {
  AnyLimiter,
  AnyLimiterOptions,
  AsyncLimiter,
  AsyncLimiterOptions,
  Limiter,
  LimiterOptions,
} from './verbs.ts'

/**
 * createLimiter creates a limiter from one rule, several rules, or a policy of tiers. Without a
 * store it keeps its states in memory. On an asynchronous store all verbs return promises. If only
 * the running program knows which kind of store it has, await every verb.
 */
export function createLimiter<const Rules extends Rule | readonly Rule[] | Policy<unknown>>(
  rules: Rules,
  options: AsyncLimiterOptions<LimiterKey<Rules>, LimiterCost<Rules>>,
): AsyncLimiter<LimiterKey<Rules>, LimiterCost<Rules>, LimiterTier<Rules>>
export function createLimiter<const Rules extends Rule | readonly Rule[] | Policy<unknown>>(
  rules: Rules,
  options?: LimiterOptions<LimiterKey<Rules>, LimiterCost<Rules>>,
): Limiter<LimiterKey<Rules>, LimiterCost<Rules>, LimiterTier<Rules>>
export function createLimiter<const Rules extends Rule | readonly Rule[] | Policy<unknown>>(
  rules: Rules,
  options: AnyLimiterOptions<LimiterKey<Rules>, LimiterCost<Rules>>,
): AnyLimiter<LimiterKey<Rules>, LimiterCost<Rules>, LimiterTier<Rules>>
export function createLimiter(
  rules: Rule | readonly Rule[] | Policy,
  options: LimiterOptions | AnyLimiterOptions = {},
): Limiter | AsyncLimiter {
  checkLimiterOptions(options)
  if (isAsync(options)) return options.store.createLimiter(rules, options)
  if (options.store === undefined) checkNotAsync(options)
  return createSyncLimiter(rules, options as LimiterOptions)
}

function isAsync(options: LimiterOptions | AnyLimiterOptions): options is AsyncLimiterOptions {
  return options.store?.kind === 'async'
}
