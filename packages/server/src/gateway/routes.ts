import type { IncomingMessage, ServerResponse } from 'node:http'
import { clientKey, type RateLimitOptions, rateLimit } from 'sluice/node'
import type { Limits } from '../limits.ts'
import type { RouteSettings, Settings } from '../settings.ts'
import { identityHeaders } from './identity.ts'
import { routeKey } from './route-key.ts'
import { createRouter } from './router.ts'
import type { VerifiedTokens } from './verified-tokens.ts'

type Options = RateLimitOptions<IncomingMessage, ServerResponse>

/** RouteEvents are called with decisions, and may change refusals. */
export interface RouteEvents {
  onDecision(decided: RouteDecision): void
  /** A refusal without a decision of a limiter. */
  onUndecided(refusal: Undecided): void
  onError(error: unknown): void
  readonly onLimited?: Options['onLimited']
}

/** RouteDecision is a decision about a request of a route. */
export interface RouteDecision {
  readonly route: string
  readonly report: Parameters<NonNullable<Options['onDecision']>>[0]
}

/** Undecided is a refusal by the deny list, or of a cost above the capacity of a rule. */
export interface Undecided {
  readonly route: string
  readonly reason: 'denied' | 'cost above capacity'
}

/** Route is a route with its limiter; `limit` is undefined where there is no limit. */
export interface Route {
  readonly settings: RouteSettings
  /** The headers from which its key is read; they must be unambiguous. */
  readonly identity: readonly string[]
  readonly limit:
    | ((request: IncomingMessage, response: ServerResponse, next: () => void) => void)
    | undefined
}

/**
 * createRoutes makes the routes of a configuration, and a function that finds the one that matches.
 */
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
    // The deny list applies to open routes, too.
    if (route.isOpen && denyList.length === 0) {
      return { settings: route, identity, limit: undefined }
    }
    const limit = rateLimit({
      limiter: limits.routes.get(route.name) ?? limits.tiers,
      // `rateLimit` uses the address by default, which is faster than a key function.
      ...(isAddress(route) ? {} : { key: routeKey(route, { addressOf, tokens }) }),
      cost: route.cost,
      shadow: route.shadow,
      trustProxy,
      headers,
      ...(allowList.length > 0 ? { allowList } : {}),
      ...(denyList.length > 0 ? { denyList } : {}),
      onDecision: (report) => events.onDecision({ route: route.name, report }),
      // A preflight request may reach any code of an upstream.
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
