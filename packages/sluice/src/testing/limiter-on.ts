import { createLimiter } from '../limiter/limiter.ts'
import type { Limiter, LimiterOptions } from '../limiter/verbs.ts'
import type { AsyncStore, Store } from '../stores/store.ts'

interface Options extends Omit<LimiterOptions, 'store'> {
  readonly store: Store | AsyncStore
}

/**
 * limiterOn creates a limiter on any store. The suite awaits every answer, so it treats asynchronous
 * limiters like synchronous ones; only these have `allow`. Several may share a name.
 */
export function limiterOn(rules: Parameters<typeof createLimiter>[0], options: Options): Limiter {
  // A slow machine must not fail the store.
  const failure = options.store.kind === 'async' ? { timeoutMs: 60_000 } : {}
  return createLimiter(rules, { ...options, share: true, ...failure } as LimiterOptions)
}
