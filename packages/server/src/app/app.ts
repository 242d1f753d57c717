import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { forbids } from '../api/access.ts'
import { createApi } from '../api/api.ts'
import { addAssets } from '../dashboard/assets.ts'
import type { LiveAsked, LiveTold } from '../dashboard/live-feed.ts'
import { createLiveHub } from '../dashboard/live-hub.ts'
import { addLive } from '../dashboard/live-route.ts'
import { createGateway } from '../gateway/gateway.ts'
import type { Limits, StoreEvents } from '../limits.ts'
import type { Figures } from '../metrics/metrics.ts'
import { joinTop, type TopKey } from '../metrics/top-keys.ts'
import type { Listen, Settings } from '../settings.ts'
import { StartError } from '../start-error.ts'
import { createDrain, DRAIN_MS } from './drain.ts'
import { addForwardAuth } from './forward-auth.ts'
import { createNotes, type Notes } from './notes.ts'
import { openAssignments } from './open-assignments.ts'
import { type OpenStore, openStore } from './open-store.ts'
import { alone, type Peers } from './peers.ts'
import { noteDecision, type Served, served } from './served.ts'

/** AppOptions are the parts of the service. */
export interface AppOptions {
  readonly settings: Settings
  readonly version: string
  readonly logger: Logger
  /** Reads the configuration again; throws if it is invalid. */
  reread(): Promise<Settings>
  /** The processes that serve together; by default only this one. */
  readonly peers?: Peers
}

/** App is the running service. */
export interface App {
  /** The URLs of the gateway and the API. */
  readonly gatewayUrl: string
  readonly apiUrl: string
  /** Reloads the configuration. If it is invalid, nothing changes and the promise rejects. */
  reload(): Promise<void>
  /** Accepts nothing new, finishes the requests in progress, and closes the store. */
  close(): Promise<void>
}

/** startApp starts the gateway and the API. */
export async function startApp(options: AppOptions): Promise<App> {
  const { settings, version, logger, peers = alone() } = options
  const notes = createNotes(version, logger, settings.decisionLog)
  const opened = openStore(settings.store, (error) =>
    logger.debug({ error: error.message }, 'redis'),
  )
  const { assignments, close: closeAssignments } = await openAssignments({
    settings,
    client: opened.client,
    logger,
    onChange: (key) => current.limits.assign(key),
  })
  const { store } = opened
  const storeEvents = storeEventsOf(opened, notes)
  const parts = { version, logger, notes, store, storeEvents, assignments }
  let current = served(settings, parts)
  notes.metrics.reloaded(true)
  // For Redis this would scan all keys.
  if (store.kind === 'sync') notes.metrics.observeStats(() => statsOf(current.limits))

  async function reload(): Promise<void> {
    try {
      const next = await options.reread()
      current = served(next, parts, current)
      warnOfFixed(settings, next, logger)
      notes.metrics.reloaded(true)
      logger.info('configuration reloaded')
    } catch (error) {
      notes.metrics.reloaded(false)
      throw error
    }
  }

  let isClosing = false
  const gateway = await createGateway({
    settings,
    logger,
    current: () => ({ isProxy: current.isProxy, find: current.gateway.find }),
    onProxied: notes.metrics.proxied,
  })
  const state = { current: () => current, isClosing: () => isClosing }
  const api = await openApi({ ...parts, ...state, peers: answering(peers, notes, reload) })
  const drains = [createDrain(gateway), createDrain(api)]
  const gatewayUrl = await listen(gateway, 'listen', settings.listen)
  const apiUrl = await listen(api, 'api', settings.api)
  logger.info({ gateway: gatewayUrl, api: apiUrl }, 'listening')

  return {
    gatewayUrl,
    apiUrl,
    reload,
    async close() {
      isClosing = true
      const endMs = performance.now() + DRAIN_MS
      for (const drain of drains) await drain(endMs)
      for (const limiter of current.limits.all.values()) await limiter.close()
      closeAssignments()
      await notes.close()
      opened.close()
    },
  }
}

function storeEventsOf({ address, trouble }: OpenStore, notes: Notes): StoreEvents {
  return {
    // A call that waits for a connection knows only that it timed out.
    onDegraded: (limiter, { message }) =>
      notes.degraded({ limiter, address, error: trouble() ?? message }),
    onRecovered: notes.recovered,
  }
}

/** Settings that need a restart. */
const fixed = ['listen', 'api', 'store', 'limits', 'assignments', 'decisionLog'] as const

function warnOfFixed(settings: Settings, next: Settings, logger: Logger): void {
  for (const name of fixed) {
    if (JSON.stringify(settings[name]) !== JSON.stringify(next[name])) {
      logger.warn(`a change of "${name}" takes effect after a restart`)
    }
  }
}

/** Answers questions of the other processes. */
function answering(peers: Peers, { metrics, topKeys, live }: Notes, reload: () => Promise<void>) {
  peers.answer('metrics', metrics.figures)
  peers.answer('top', () => topKeys.top(MOST_TOP))
  peers.answer('reload', reload)
  peers.answer('live', (asked) => live.tell(asked as LiveAsked))
  return peers
}

interface ApiParts {
  readonly version: string
  readonly logger: Logger
  readonly notes: Notes
  readonly peers: Peers
  current(): Served
  isClosing(): boolean
}

/** The API with the dashboard and forward auth; it gathers metrics and lists from all processes. */
function openApi(parts: ApiParts): Promise<FastifyInstance> {
  const { version, logger, notes, peers, current } = parts
  const { metrics } = notes
  const gather = (asked: LiveAsked) => peers.gather<LiveTold>('live', asked)
  const hub = createLiveHub({ feed: notes.live, gather })
  return createApi({
    logger,
    version,
    current,
    notReady() {
      if (parts.isClosing()) return 'The service is shutting down.'
      const isRefusing = notes.isDegraded() && current().settings.store.onFailure === 'closed'
      return isRefusing ? 'The store is unavailable, and all requests are refused.' : undefined
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
    onDecision: (told) => noteDecision(notes, current().limits, told, true),
    onUndecided: metrics.undecided,
    onSettled: metrics.settled,
    add(app, guard) {
      addForwardAuth(app, guard, (asked) => current().auth.find(asked))
      addAssets(app)
      addLive(app, {
        hub,
        about: () => current().about,
        mayChange: ({ raw }) => forbids(raw, 'full', current().settings.admin) === undefined,
        onRequest: guard('read'),
      })
    },
  })
}

/** The longest list that the API returns. */
const MOST_TOP = 1_000

/** The keys and evictions of all limiters on a store in memory. */
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
    const why = code === 'EADDRINUSE' ? 'the port is in use' : message
    throw new StartError(
      `cannot listen at ${host}:${port}: ${why}. Free it, or set \`${name}\` in the configuration.`,
      { cause },
    )
  }
}
