import type { IncomingMessage, ServerResponse } from 'node:http'
import { clientKey, type RateLimitOptions, rateLimit } from 'sluice/node'
import type { Limits } from '../limits.ts'
import type { RouteSettings, Settings } from '../settings.ts'
import { identityHeaders } from './identity.ts'
import { routeKey } from './route-key.ts'
import { createRouter } from './router.ts'
import type { VerifiedTokens } from './verified-tokens.ts'

type Options = RateLimitOptions<IncomingMessage, ServerResponse>

/** RouteEvents are told of decisions, and may change refusals. */
export interface RouteEvents {
  onDecision(told: Told): void
  /** A refusal for which no limiter was asked. */
  onUndecided(told: Undecided): void
  onError(error: unknown): void
  readonly onLimited?: Options['onLimited']
}

/** Told is a decision about a request of a route. */
export interface Told {
  readonly route: string
  readonly report: Parameters<NonNullable<Options['onDecision']>>[0]
}

/** Undecided is a refusal of the deny list, or of a cost that no rule could ever admit. */
export interface Undecided {
  readonly route: string
  readonly reason: 'denied' | 'cost above capacity'
}

/** Route is a route that is ready: `limit` is undefined where there is none. */
export interface Route {
  readonly settings: RouteSettings
  /** The headers that its key is read from, which must be clear. */
  readonly identity: readonly string[]
  readonly limit:
    | ((request: IncomingMessage, response: ServerResponse, next: () => void) => void)
    | undefined
}

/** createRoutes makes the routes of a configuration ready, and gives the way to find one. */
export function createRoutes(
  settings: Settings,
  limits: Limits,
  tokens: VerifiedTokens | undefined,
  events: RouteEvents,
) {
  const { trustProxy, allowList, denyList, headers } = settings
  const addressOf = clientKey({ trustProxy })
  const routes = settings.routes.map((route): Route => {
    const identity = identityHeaders(route, settings.jwt?.header)
    // The deny list holds for open routes, too.
    if (route.isOpen && denyList.length === 0) {
      return { settings: route, identity, limit: undefined }
    }
    const limit = rateLimit({
      limiter: limits.routes.get(route.name) ?? limits.tiers,
      // The address is what counts without a key, and quicker than to ask for it.
      ...(isAddress(route) ? {} : { key: routeKey(route, { addressOf, tokens }) }),
      cost: route.cost,
      shadow: route.shadow,
      trustProxy,
      headers,
      ...(allowList.length > 0 ? { allowList } : {}),
      ...(denyList.length > 0 ? { denyList } : {}),
      onDecision: (report) => events.onDecision({ route: route.name, report }),
      // What is a question of a browser to an app may be anything to an upstream.
      countPreflights: true,
      ...(route.isOpen ? { skip: () => true } : {}),
      onError: events.onError,
      onLimited(limited) {
        if (!limited.decision) {
          const reason = limited.status === 403 ? 'denied' : 'cost above capacity'
          events.onUndecided({ route: route.name, reason })
        }
        return events.onLimited?.(limited)
      },
    })
    return { settings: route, identity, limit }
  })
  return { routes, find: createRouter(routes) }
}

function isAddress({ key }: RouteSettings): boolean {
  return key.length === 1 && key[0].from === 'address'
}
