import type { SluiceError } from 'sluice'
import type { AnyLimiter } from '../limits.ts'
import type { ApiOptions } from './api.ts'

/** RouteForecast is what a route would answer to a key now, at the cost of that route. */
export interface RouteForecast {
  readonly route: string
  /** `'tiers'`, or the route itself where it has rules of its own. */
  readonly limiter: string
  readonly cost: number
  /** Would be let through all the same. */
  readonly shadow: boolean
  readonly allowed: boolean
  /** Infinite, and so null in JSON, where there is no limit. */
  readonly remaining: number
  /** null if it could never pass: the cost is above the capacity. */
  readonly retryAfterMs: number | null
}

/** routesFor asks the limiters of all routes with a limit, and spends nothing. */
export async function routesFor(
  key: string,
  { limits, settings }: ReturnType<ApiOptions['current']>,
): Promise<RouteForecast[]> {
  // Many routes share a limiter and a cost.
  const asked = new Map<
    string,
    Promise<Pick<RouteForecast, 'allowed' | 'remaining' | 'retryAfterMs'>>
  >()
  const limited = settings.routes.filter(({ isOpen }) => !isOpen)
  return Promise.all(
    limited.map(async ({ name, cost, shadow }) => {
      const limiter = limits.routes.has(name) ? name : 'tiers'
      const question = `${cost} ${limiter}`
      const answer =
        asked.get(question) ?? forecast(limits.all.get(limiter) ?? limits.tiers, key, cost)
      asked.set(question, answer)
      const { allowed, remaining, retryAfterMs } = await answer
      return { route: name, limiter, cost, shadow, allowed, remaining, retryAfterMs }
    }),
  )
}

async function forecast(limiter: AnyLimiter, key: string, cost: number) {
  try {
    return await limiter.peek(key, cost)
  } catch (error) {
    const { code } = error as SluiceError
    if (code !== 'SLUICE_COST_EXCEEDS_CAPACITY') throw error
    const { remaining } = await limiter.peek(key)
    return { allowed: false, remaining, retryAfterMs: null }
  }
}
