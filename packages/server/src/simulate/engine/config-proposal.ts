import type { Limiter } from 'sluice'
import { createLimits, noAssignments } from '../../limits.ts'
import type { Settings } from '../../settings.ts'
import type { LogRequest } from '../log/request.ts'
import { createPlaces, type Spot } from './config-places.ts'
import {
  ALLOWED,
  askOf,
  onSmallest,
  type Place,
  type Proposal,
  type ProposalOptions,
} from './proposal.ts'

/** The tier under which clients with overrides are counted. */
const OVERRIDE = 'override'

/** A request with its place in the configuration. */
interface Found extends Place {
  readonly spot: Spot
  /** The tier to decide by, instead of the key's own. */
  readonly by: string | undefined
}

/**
 * createConfigProposal decides like the service with a configuration: tiers, clients and overrides,
 * and routes with their keys, costs and rules. The tier in a log is that of the configuration in
 * use when it was written: it applies with `trustsTier` only, or for calls of the API about a
 * client that the configuration does not list, because such a call may name a tier.
 */
export function createConfigProposal(
  name: string,
  settings: Settings,
  options: ProposalOptions,
  trustsTier = false,
): Proposal {
  const events = { onDegraded() {}, onRecovered() {} }
  const { made, own } = onSmallest(options, (store) =>
    createLimits(settings, store, noAssignments, events),
  )
  const { tiers, routes, policy, all } = made
  const spotOf = createPlaces(name, settings)
  const ask = askOf([
    ...Object.values(settings.tiers).flat(),
    ...Object.values(settings.overrides).flat(),
    ...settings.routes.flatMap(({ rules }) => rules ?? []),
  ])
  let last: LogRequest | undefined
  let found: Found

  const isNamed = (key: string) =>
    Object.hasOwn(settings.clients, key) || Object.hasOwn(settings.overrides, key)

  /** The tier that the log names, if it applies. */
  function namedTier({ tier, route }: LogRequest, key: string): string | undefined {
    if (tier === undefined || !Object.hasOwn(settings.tiers, tier)) return undefined
    return trustsTier || (route === '' && !isNamed(key)) ? tier : undefined
  }

  /** Cached, since it is called several times in a row for the same request. */
  function placeOf(request: LogRequest): Found {
    if (request === last) return found
    const spot = spotOf(request)
    const { route, key, isTold } = spot
    const by = namedTier(request, key)
    const tier = Object.hasOwn(settings.overrides, key) ? OVERRIDE : (by ?? policy.tierOf(key))
    const mode = modeOf(spot)
    const cost = mode === 'open' || mode === 'lost' ? 0 : spot.cost
    found = { spot, by, tier, cost, route: isTold ? route?.name : undefined, mode }
    last = request
    return found
  }

  return {
    name,
    decide(request) {
      const { mode, by, spot } = placeOf(request)
      if (mode === 'open' || mode === 'lost') return ALLOWED
      const limiter = routes.get(spot.route?.name ?? '')
      const key = own(spot.key)
      if (limiter) return ask(limiter as Limiter, key, spot.cost, undefined)
      return ask(tiers as Limiter, key, spot.cost, by)
    },
    placeOf,
    evictions: () =>
      [...all.values()].reduce((sum, limiter) => sum + (limiter as Limiter).stats().evictions, 0),
    leftOut: (['allowList', 'denyList'] as const).filter((list) => settings[list].length > 0),
  }
}

function modeOf({ route, isLost }: Spot): Place['mode'] {
  if (isLost) return 'lost'
  if (route?.isOpen) return 'open'
  return route?.shadow ? 'shadow' : 'limited'
}
