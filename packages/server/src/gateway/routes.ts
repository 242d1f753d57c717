import type { IncomingMessage, ServerResponse } from 'node:http'
import { apiKey, compositeKey } from 'sluice'
import { clientKey, type RateLimitOptions, rateLimit } from 'sluice/node'
import type { AnyLimiter, Limits } from '../limits.ts'
import type { KeyPart, RouteSettings, Settings } from '../settings.ts'
import { createRouter } from './router.ts'

type Options = RateLimitOptions<IncomingMessage, ServerResponse>

/** RouteEvents are told of decisions, and may change refusals. */
export interface RouteEvents {
  onDecision(told: Told): void
  onError(error: unknown): void
  readonly onLimited?: Options['onLimited']
}

/** Told is a decision about a request of a route. */
export interface Told {
  readonly route: string
  readonly report: Parameters<NonNullable<Options['onDecision']>>[0]
}

/** Route is a route that is ready: `limit` is undefined where there is none. */
export interface Route {
  readonly settings: RouteSettings
  readonly limiter: AnyLimiter | undefined
  readonly keyOf: (request: IncomingMessage) => string
  readonly limit:
    | ((request: IncomingMessage, response: ServerResponse, next: () => void) => void)
    | undefined
}

/** createRoutes makes the routes of a configuration ready, and gives the way to find one. */
export function createRoutes(settings: Settings, limits: Limits, events: RouteEvents) {
  const { trustProxy, allowList, denyList, headers } = settings
  const addressOf = clientKey({ trustProxy })
  const routes = settings.routes.map((route): Route => {
    const keyOf = keyReader(route, addressOf)
    const limiter = limits.routes.get(route.name) ?? limits.tiers
    // The deny list holds for open routes, too.
    if (route.isOpen && denyList.length === 0) {
      return { settings: route, limiter: undefined, keyOf, limit: undefined }
    }
    const limit = rateLimit({
      limiter,
      key: keyOf,
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
      onLimited: events.onLimited,
    })
    return { settings: route, limiter, keyOf, limit }
  })
  return { routes, find: createRouter(routes) }
}

/** The key of a request, part by part; where one is missing the address stands in. */
function keyReader(
  { key, name }: RouteSettings,
  addressOf: (request: IncomingMessage) => string,
): (request: IncomingMessage) => string {
  const readers = key.map((part) => partReader(part, name, addressOf))
  if (readers.length === 1) return readers[0]
  return (request) => {
    const parts = readers.map((read) => read(request))
    const length = parts.reduce((sum, part) => sum + part.length + 8, 0)
    return length <= 1_024 ? compositeKey(...parts) : (hashed(parts.join('\n')) as string)
  }
}

const hashed = apiKey((secret: string) => secret)

function partReader(
  part: KeyPart,
  route: string,
  addressOf: (request: IncomingMessage) => string,
): (request: IncomingMessage) => string {
  if (part.from === 'address') return addressOf
  if (part.from === 'route') return () => route
  const { name, from } = part
  return (request) => {
    const value = request.headers[name]
    if (typeof value !== 'string' || value === '') return addressOf(request)
    // On Node the hash is there at once.
    if (from === 'api-key' || value.length > 256) return hashed(value) as string
    return `${name}:${value}`
  }
}
