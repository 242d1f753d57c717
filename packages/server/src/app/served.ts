import type { Logger } from 'pino'
import type { AsyncStore, Store } from 'sluice'
import type { ApiDecision } from '../api/api.ts'
import { aboutOf } from '../dashboard/live-about.ts'
import type { LiveAbout } from '../dashboard/live-event.ts'
import { proxyList } from '../gateway/forwarding.ts'
import { startedMs } from '../gateway/gateway.ts'
import { closeIfLong } from '../gateway/hang-up.ts'
import { createRoutes, type RouteEvents } from '../gateway/routes.ts'
import { createVerifiedTokens, type VerifiedTokens } from '../gateway/verified-tokens.ts'
import { type Assignments, createLimits, type Limits, type StoreEvents } from '../limits.ts'
import type { Settings } from '../settings.ts'
import { refusedWith } from './forward-auth.ts'
import type { Notes } from './notes.ts'

/** Served is what a configuration is made into. It is replaced as a whole. */
export interface Served {
  readonly settings: Settings
  readonly limits: Limits
  readonly about: LiveAbout
  readonly tokens: VerifiedTokens | undefined
  readonly gateway: ReturnType<typeof createRoutes>
  readonly auth: ReturnType<typeof createRoutes>
  isProxy(address: string): boolean
}

/** ServedParts are what stays when the configuration changes. */
export interface ServedParts {
  readonly version: string
  readonly logger: Logger
  readonly notes: Notes
  readonly store: Store | AsyncStore
  readonly storeEvents: StoreEvents
  readonly assignments: Assignments
}

/** served makes a configuration into what serves it, after `before`. */
export function served(settings: Settings, parts: ServedParts, before?: Served): Served {
  const { version, store, storeEvents, assignments } = parts
  const limits = createLimits(settings, store, assignments, storeEvents)
  const { trustProxy } = settings
  const tokens = tokensOf(settings, parts, before)
  const events = routeEvents(parts, limits)
  // The proxy that asks on behalf of a client is one more.
  const nearer = typeof trustProxy === 'number' ? trustProxy + 1 : trustProxy
  return {
    settings,
    limits,
    about: aboutOf(settings, version),
    tokens,
    isProxy: proxyList(trustProxy),
    gateway: createRoutes(settings, limits, tokens, {
      ...events,
      onLimited: ({ request }) => closeIfLong(request),
    }),
    auth: createRoutes({ ...settings, trustProxy: nearer }, limits, tokens, {
      ...events,
      onLimited: ({ request }) => {
        const status = refusedWith(request.url)
        return status === undefined ? undefined : { status }
      },
    }),
  }
}

/** Keys that were fetched are not fetched again because something else has changed. */
function tokensOf(
  { jwt }: Settings,
  { notes, logger }: ServedParts,
  before: Served | undefined,
): VerifiedTokens | undefined {
  if (!jwt) return undefined
  if (JSON.stringify(jwt) === JSON.stringify(before?.settings.jwt)) return before?.tokens
  return createVerifiedTokens(jwt, {
    onBadToken: notes.metrics.badToken,
    onError: (message) => logger.warn(message),
  })
}

function routeEvents({ notes, logger }: ServedParts, limits: Limits): RouteEvents {
  return {
    onDecision({ route, report }) {
      const { decision, shadowed } = report
      // Rules of the service have no `by`.
      const [key, cost] = [report.key as string, report.cost as number]
      const sinceMs = startedMs(report.request)
      const seconds = sinceMs && (performance.now() - sinceMs) / 1_000
      const told = { route, key, tier: undefined, cost, decision, shadowed, seconds }
      noteDecision(notes, limits, told, false)
    },
    onUndecided: notes.metrics.undecided,
    onError: (error) => logger.error(error),
  }
}

/** noteDecision notes a decision of the API or of a route, with the tier the key has. */
export function noteDecision(
  notes: Notes,
  limits: Limits,
  told: ApiDecision,
  isByApi: boolean,
): void {
  const { route, key, cost, decision, shadowed, seconds } = told
  const tier = told.tier ?? limits.policy.tierOf(key)
  notes.decided({ route, tier, key, cost, decision, shadowed, isByApi, seconds })
}
