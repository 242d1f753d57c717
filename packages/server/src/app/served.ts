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

/** Served is a configuration in use. A reload replaces it as a whole. */
export interface Served {
  readonly settings: Settings
  readonly limits: Limits
  readonly about: LiveAbout
  readonly tokens: VerifiedTokens | undefined
  readonly gateway: ReturnType<typeof createRoutes>
  readonly auth: ReturnType<typeof createRoutes>
  isProxy(address: string): boolean
}

/** ServedParts are the parts that stay when the configuration changes. */
export interface ServedParts {
  readonly version: string
  readonly logger: Logger
  readonly notes: Notes
  readonly store: Store | AsyncStore
  readonly storeEvents: StoreEvents
  readonly assignments: Assignments
}

/** served builds what serves a configuration; `before` is what served the previous one. */
export function served(settings: Settings, parts: ServedParts, before?: Served): Served {
  const { version, store, storeEvents, assignments } = parts
  const limits = createLimits(settings, store, assignments, storeEvents)
  const { trustProxy } = settings
  const tokens = tokensOf(settings, parts, before)
  const events = routeEvents(parts, limits)
  // The proxy that calls forward auth adds one hop.
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

/** Keeps the fetched keys while the `jwt` settings stay the same. */
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
      const decided = { route, key, tier: undefined, cost, decision, shadowed, seconds }
      noteDecision(notes, limits, decided, false)
    },
    onUndecided: notes.metrics.undecided,
    onError: (error) => logger.error(error),
  }
}

/** noteDecision records a decision of the API or of a route, with the tier of the key. */
export function noteDecision(
  notes: Notes,
  limits: Limits,
  decided: ApiDecision,
  isByApi: boolean,
): void {
  const { route, key, cost, decision, shadowed, seconds } = decided
  const tier = decided.tier ?? limits.policy.tierOf(key)
  notes.decided({ route, tier, key, cost, decision, shadowed, isByApi, seconds })
}
