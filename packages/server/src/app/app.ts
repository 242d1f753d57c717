import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { forbids } from '../api/access.ts'
import { type ApiDecision, createApi } from '../api/api.ts'
import { addAssets } from '../dashboard/assets.ts'
import { aboutOf } from '../dashboard/live-about.ts'
import type { LiveAbout } from '../dashboard/live-event.ts'
import type { LiveAsked, LiveTold } from '../dashboard/live-feed.ts'
import { createLiveHub } from '../dashboard/live-hub.ts'
import { addLive } from '../dashboard/live-route.ts'
import { proxyList } from '../gateway/forwarding.ts'
import { createGateway, startedMs } from '../gateway/gateway.ts'
import { closeIfLong } from '../gateway/hang-up.ts'
import { createRoutes, type RouteEvents } from '../gateway/routes.ts'
import { createVerifiedTokens, type VerifiedTokens } from '../gateway/verified-tokens.ts'
import { createLimits, type Limits } from '../limits.ts'
import type { Figures } from '../metrics/metrics.ts'
import { joinTop, type TopKey } from '../metrics/top-keys.ts'
import type { Listen, Settings } from '../settings.ts'
import { StartError } from '../start-error.ts'
import { createDrain, DRAIN_MS } from './drain.ts'
import { addForwardAuth, refusedWith } from './forward-auth.ts'
import { createNotes } from './notes.ts'
import { openAssignments } from './open-assignments.ts'
import { openStore } from './open-store.ts'
import { alone, type Peers } from './peers.ts'

/** AppOptions are what the service is made of. */
export interface AppOptions {
  readonly settings: Settings
  readonly version: string
  readonly logger: Logger
  /** Reads the configuration again; throws if it is not good. */
  reread(): Promise<Settings>
  /** Who else serves; nobody by default. */
  readonly peers?: Peers
}

/** App is the running service. */
export interface App {
  /** Where the gateway and the API listen. */
  readonly gatewayUrl: string
  readonly apiUrl: string
  /** Reads the configuration again. If that is not good nothing changes, and it throws. */
  reload(): Promise<void>
  /** Lets what is under way finish, and accepts nothing new. */
  close(): Promise<void>
}

/** What a configuration is made into; replaced as a whole. */
interface State {
  readonly settings: Settings
  readonly limits: Limits
  readonly about: LiveAbout
  readonly tokens: VerifiedTokens | undefined
  readonly gateway: ReturnType<typeof createRoutes>
  readonly auth: ReturnType<typeof createRoutes>
  isProxy(address: string): boolean
}

/** startApp starts the gateway and the API. */
export async function startApp(options: AppOptions): Promise<App> {
  const { version, logger, peers = alone() } = options
  const notes = createNotes(version, logger, options.settings.decisionLog)
  const { metrics, topKeys, live } = notes
  let isClosing = false

  const {
    store,
    client,
    address,
    trouble,
    close: closeStore,
  } = openStore(options.settings.store, (error) => logger.debug({ error: error.message }, 'redis'))
  const storeEvents = {
    // A call that waits for a connection knows only that it took too long.
    onDegraded: (limiter: string, { message }: Error) =>
      notes.degraded({ limiter, address, error: trouble() ?? message }),
    onRecovered: notes.recovered,
  }

  function note(told: ApiDecision, isByApi: boolean): void {
    const { route, key, cost, decision, shadowed, seconds } = told
    const tier = told.tier ?? state.limits.policy.tierOf(key)
    notes.decided({ route, tier, key, cost, decision, shadowed, isByApi, seconds })
  }

  const routeEvents: RouteEvents = {
    onDecision({ route, report }) {
      const { key, cost, decision, shadowed } = report
      const sinceMs = startedMs(report.request)
      const seconds = sinceMs && (performance.now() - sinceMs) / 1_000
      note({ route, key, tier: undefined, cost, decision, shadowed, seconds }, false)
    },
    onUndecided: metrics.undecided,
    onError: (error) => logger.error(error),
  }

  const { assignments, close: closeAssignments } = await openAssignments({
    settings: options.settings,
    client,
    logger,
    onChange: (key) => state.limits.assign(key),
  })

  function build(settings: Settings, before?: State): State {
    const limits = createLimits(settings, store, assignments, storeEvents)
    const { trustProxy } = settings
    const tokens = tokensOf(settings, before)
    // The proxy that asks on behalf of a client is one more.
    const nearer = typeof trustProxy === 'number' ? trustProxy + 1 : trustProxy
    return {
      settings,
      limits,
      about: aboutOf(settings, version),
      tokens,
      isProxy: proxyList(trustProxy),
      gateway: createRoutes(settings, limits, tokens, {
        ...routeEvents,
        onLimited: ({ request }) => closeIfLong(request),
      }),
      auth: createRoutes({ ...settings, trustProxy: nearer }, limits, tokens, {
        ...routeEvents,
        onLimited: ({ request }) => {
          const status = refusedWith(request.url)
          return status === undefined ? undefined : { status }
        },
      }),
    }
  }

  /** Keys that were fetched are not fetched again because something else has changed. */
  function tokensOf({ jwt }: Settings, before?: State): VerifiedTokens | undefined {
    if (!jwt) return undefined
    if (JSON.stringify(jwt) === JSON.stringify(before?.settings.jwt)) return before?.tokens
    return createVerifiedTokens(jwt, {
      onBadToken: metrics.badToken,
      onError: (message) => logger.warn(message),
    })
  }

  let state = build(options.settings)
  metrics.reloaded(true)
  // Redis would have to go through all of its keys.
  if (store.kind === 'sync') metrics.observeStats(() => statsOf(state.limits))

  async function reload(): Promise<void> {
    try {
      const settings = await options.reread()
      const next = build(settings, state)
      for (const name of fixed) {
        if (JSON.stringify(settings[name]) !== JSON.stringify(options.settings[name])) {
          logger.warn(`a change of "${name}" takes effect after a restart`)
        }
      }
      state = next
      metrics.reloaded(true)
      logger.info('the configuration has been read again')
    } catch (error) {
      metrics.reloaded(false)
      throw error
    }
  }

  peers.answer('metrics', metrics.figures)
  peers.answer('top', () => topKeys.top(MOST_TOP))
  peers.answer('reload', reload)
  peers.answer('live', (asked) => live.tell(asked as LiveAsked))
  const hub = createLiveHub({
    feed: live,
    gather: (asked) => peers.gather<LiveTold>('live', asked),
  })

  const gateway = await createGateway({
    settings: options.settings,
    logger,
    current: () => ({ isProxy: state.isProxy, find: state.gateway.find }),
    onProxied: metrics.proxied,
  })
  const api = await createApi({
    logger,
    version,
    current: () => state,
    notReady() {
      if (isClosing) return 'It is shutting down.'
      const isRefusing = notes.isDegraded() && state.settings.store.onFailure === 'closed'
      return isRefusing ? 'The store is away, and everything is refused.' : undefined
    },
    async metrics() {
      const all = await peers.gather<Figures>('metrics')
      return { text: await metrics.text(all), type: metrics.contentType }
    },
    async top(most) {
      const keys = joinTop(await peers.gather<TopKey[]>('top'), most)
      return keys.map(({ key, count, ...others }) => {
        return { key, refused: count - others.shadowed, ...others }
      })
    },
    async reload() {
      await peers.gather('reload')
    },
    onDecision: (told) => note(told, true),
    onUndecided: metrics.undecided,
    onSettled: metrics.settled,
    add(app, guard) {
      addForwardAuth(app, guard, (asked) => state.auth.find(asked))
      addAssets(app)
      addLive(app, {
        hub,
        about: () => state.about,
        mayChange: ({ raw }) => forbids(raw, 'full', state.settings.admin) === undefined,
        onRequest: guard('read'),
      })
    },
  })

  const drains = [createDrain(gateway), createDrain(api)]
  const gatewayUrl = await listen(gateway, 'listen', options.settings.listen)
  const apiUrl = await listen(api, 'api', options.settings.api)
  logger.info({ gateway: gatewayUrl, api: apiUrl }, 'listening')

  return {
    gatewayUrl,
    apiUrl,
    reload,
    async close() {
      isClosing = true
      const endMs = performance.now() + DRAIN_MS
      for (const drain of drains) await drain(endMs)
      for (const limiter of state.limits.all.values()) await limiter.close()
      closeAssignments()
      await notes.close()
      closeStore()
    },
  }
}

/** As many as the API tells. */
const MOST_TOP = 1_000

/** What cannot change while it runs. */
const fixed = ['listen', 'api', 'store', 'limits', 'assignments', 'decisionLog'] as const

/** How many keys all limiters of a store in memory hold, and how many they had to let go. */
function statsOf({ all }: Limits): { keys: number; evictions: number } {
  const stats = { keys: 0, evictions: 0 }
  for (const limiter of all.values()) {
    const own = limiter.stats()
    if (!('rows' in own)) continue
    stats.keys += own.rows
    stats.evictions += own.evictions
  }
  return stats
}

async function listen(app: FastifyInstance, name: string, { host, port }: Listen): Promise<string> {
  try {
    return await app.listen({ host, port })
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    const why = code === 'EADDRINUSE' ? 'something listens there already' : message
    throw new StartError(
      `cannot listen at ${host}:${port}: ${why}. Stop that, or set \`${name}\` in the configuration.`,
      { cause },
    )
  }
}
