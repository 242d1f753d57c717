import { SluiceError } from 'sluice'
import { z } from 'zod'
import { type AnyLimiter, OWN } from '../limits.ts'
import { MOST_UNITS } from '../most-units.ts'
import type { ApiOptions } from './api.ts'

/** askedFields are the fields of a body that name the key, and the tier or route that decides. */
export const askedFields = {
  key: z.string(),
  tier: z.string().optional(),
  /** The name of a route with its own rules; default: the rules of the key's tier. */
  route: z.string().optional(),
}

/** CallBody is the body of a call, checked for its shape only. */
export interface CallBody {
  readonly key: string
  readonly cost?: number | undefined
  readonly tier?: string | undefined
  readonly route?: string | undefined
}

/** Question is a call to a limiter. */
export interface Question {
  readonly limiter: AnyLimiter
  readonly key: string
  readonly cost: number
  /** The tier to decide by; undefined for the key's own. */
  readonly call: { readonly tier: string } | undefined
  /** As named in the call; an empty route means the rules of a tier. */
  readonly route: string
  readonly tier: string | undefined
  /** Whether the route is in shadow mode. */
  readonly isShadow: boolean
}

/** questionOf finds the limiter for a body; errors name the field by the prefix `at`. */
export function questionOf(
  { limits, settings }: ReturnType<ApiOptions['current']>,
  { key, cost = 1, tier, route }: CallBody,
  at = '',
): Question {
  checkCost(`${at}cost`, cost, 'To give units back, send POST /v1/refund.')
  const about = { key, cost, route: route ?? '', tier }
  if (route === undefined) {
    const call = tier === undefined ? undefined : { tier }
    return { ...about, limiter: limits.tiers, call, isShadow: false }
  }
  const limiter = limits.routes.get(route)
  if (limiter && tier === undefined) {
    const isShadow = settings.routes.some(({ name, shadow }) => shadow && name === route)
    return { ...about, limiter, call: { tier: OWN }, isShadow }
  }
  const known = [...limits.routes.keys()].map((name) => JSON.stringify(name)).join(', ')
  throw new SluiceError(
    'SLUICE_OPTION',
    limiter
      ? 'give a route or a tier, not both: a route with its own rules has no tiers.'
      : `no route ${JSON.stringify(route)} has its own rules. Known: ${known || 'none'}.`,
  )
}

/**
 * checkCost throws unless a cost is a whole number in range; `remedy` is the hint for one below 0.
 */
export function checkCost(what: string, cost: number, remedy: string): void {
  if (Number.isInteger(cost) && cost >= 0 && cost <= MOST_UNITS) return
  const most = MOST_UNITS.toLocaleString('en')
  const help = cost < 0 ? ` ${remedy}` : ''
  throw new SluiceError(
    'SLUICE_COST',
    `${what} must be a whole number from 0 to ${most}, got ${cost}.${help}`,
  )
}
