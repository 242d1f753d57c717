import type { SluiceError, Source } from 'sluice'
import { isEnforced } from '../decided.ts'
import type { AnyLimiter } from '../limits.ts'
import type { ApiOptions } from './api.ts'

/** RouteForecast is what a route would decide for a key now, at the route's cost. */
export interface RouteForecast {
  readonly route: string
  /** `'tiers'`, or the name of the route if it has its own rules. */
  readonly limiter: string
  readonly cost: number
  /** Whether the route is in shadow mode: `allowed` is then false for a blocked key only. */
  readonly shadow: boolean
  readonly allowed: boolean
  /** The decision of the rules; differs from `allowed` in shadow mode only. */
  readonly wouldAllow: boolean
  /** Infinite without a limit, which JSON turns into null. */
  readonly remaining: number
  /** null if it can never pass, since the cost is above the capacity. */
  readonly retryAfterMs: number | null
}

/** routesFor peeks at the limiters of all routes that have a limit. */
export async function routesFor(
  key: string,
  { limits, settings }: ReturnType<ApiOptions['current']>,
): Promise<RouteForecast[]> {
  // Many routes share a limiter and a cost.
  const asked = new Map<string, Promise<Forecast>>()
  const limited = settings.routes.filter(({ isOpen }) => !isOpen)
  return Promise.all(
    limited.map(async ({ name, cost, shadow }) => {
      const limiter = limits.routes.has(name) ? name : 'tiers'
      const question = `${cost} ${limiter}`
      const answer =
        asked.get(question) ?? forecast(limits.all.get(limiter) ?? limits.tiers, key, cost)
      asked.set(question, answer)
      const { wouldAllow, source, remaining, retryAfterMs } = await answer
      const allowed = wouldAllow || !isEnforced(source, shadow)
      return { route: name, limiter, cost, shadow, allowed, wouldAllow, remaining, retryAfterMs }
    }),
  )
}

interface Forecast extends Pick<RouteForecast, 'wouldAllow' | 'remaining' | 'retryAfterMs'> {
  readonly source: Source
}

async function forecast(limiter: AnyLimiter, key: string, cost: number): Promise<Forecast> {
  try {
    const { allowed, remaining, retryAfterMs, source } = await limiter.peek(key, cost)
    return { wouldAllow: allowed, remaining, retryAfterMs, source }
  } catch (error) {
    const { code } = error as SluiceError
    if (code !== 'SLUICE_COST_EXCEEDS_CAPACITY') throw error
    const { remaining, source } = await limiter.peek(key)
    return { wouldAllow: false, remaining, retryAfterMs: null, source }
  }
}
