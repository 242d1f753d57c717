import { SluiceError } from 'sluice'
import { z } from 'zod'
import { type AnyLimiter, OWN } from '../limits.ts'
import { MOST_UNITS } from '../most-units.ts'
import type { ApiOptions } from './api.ts'

/** askedFields are the fields of a body that name the key, and the tier or route whose rules count. */
export const askedFields = {
  key: z.string(),
  tier: z.string().optional(),
  /** The name of a route with rules of its own; default: the rules of the key's tier. */
  route: z.string().optional(),
}

/** Asked is what a body says, checked for its shape only. */
export interface Asked {
  readonly key: string
  readonly cost?: number | undefined
  readonly tier?: string | undefined
  readonly route?: string | undefined
}

/** Question is what a limiter is asked. */
export interface Question {
  readonly limiter: AnyLimiter
  readonly key: string
  readonly cost: number
  /** The tier to name to the limiter; undefined for that of the key. */
  readonly call: { readonly tier: string } | undefined
  /** As they were asked for; an empty route stands for the rules of a tier. */
  readonly route: string
  readonly tier: string | undefined
  /** Whether the route refuses no request because of a rule. */
  readonly isShadow: boolean
}

/** questionOf finds the limiter that a body asks; `at` says where in the body it stands. */
export function questionOf(
  { limits, settings }: ReturnType<ApiOptions['current']>,
  { key, cost = 1, tier, route }: Asked,
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
      ? 'give a route or a tier, not both: a route with rules of its own has no tiers.'
      : `no route ${JSON.stringify(route)} has rules of its own. There are: ${known || 'none'}.`,
  )
}

/** checkCost throws unless a cost is a whole number in range; `remedy` is for one below 0. */
export function checkCost(what: string, cost: number, remedy: string): void {
  if (Number.isInteger(cost) && cost >= 0 && cost <= MOST_UNITS) return
  const most = MOST_UNITS.toLocaleString('en')
  const help = cost < 0 ? ` ${remedy}` : ''
  throw new SluiceError(
    'SLUICE_COST',
    `${what} must be a whole number from 0 to ${most}, got ${cost}.${help}`,
  )
}
