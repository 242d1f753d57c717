import type {
  AssignmentSettings,
  DecisionLogSettings,
  KeyPart,
  Listen,
  RouteSettings,
  Settings,
  StoreSettings,
  UpstreamSettings,
} from '../settings.ts'
import { storeDefaults } from '../settings.ts'
import type { Config } from './config-schema.ts'
import { routeName } from './route-name.ts'
import { rulesOf, splitListen } from './texts.ts'

type Route = NonNullable<Config['routes']>[number]

/** buildSettings fills in the defaults of a configuration that has been checked. */
export function buildSettings(config: Config): Settings {
  const upstreams = new Map(
    Object.entries(config.upstreams ?? {}).map(([name, each]) => [name, upstreamOf(name, each)]),
  )
  const only = upstreams.size === 1 ? [...upstreams.values()][0] : undefined
  const key = keyOf(config.key ?? 'address')
  const routes = config.routes?.length ? config.routes : [{ path: '/**' } satisfies Route]
  return {
    listen: listenOf(config.listen, 8080),
    api: listenOf(config.api, 8081),
    store: storeOf(config.store ?? 'memory'),
    tiers: mapTable(config.tiers, rulesOf),
    defaultTier: config.defaultTier ?? Object.keys(config.tiers)[0],
    clients: mapTable(config.clients, (tier) => tier),
    overrides: mapTable(config.overrides, rulesOf),
    routes: routes.map((route) => routeOf(route, key, upstreams.get(route.upstream ?? '') ?? only)),
    assignments: assignmentsOf(config),
    jwt: config.jwt && {
      ...{ jwks: '', secret: '', publicKey: '', issuer: '', audience: '' },
      ...config.jwt,
      header: config.jwt.header?.toLowerCase() ?? 'authorization',
    },
    decisionLog: decisionLogOf(config.decisionLog),
    trustProxy: config.trustProxy ?? 0,
    allowList: config.allowList ?? [],
    denyList: config.denyList ?? [],
    headers: config.headers ?? ['x', 'draft-11'],
    admin: { tokens: (config.admin?.tokens ?? []).map(tokenOf) },
    limits: {
      bodyBytes: 10_485_760,
      headerBytes: 16_384,
      requestTimeoutMs: 30_000,
      connections: 10_000,
      ...config.limits,
    },
  }
}

/** Fills in the host and the port, by default 127.0.0.1 and `port`. */
function listenOf(listen: Config['listen'], port: number): Listen {
  const given = typeof listen === 'object' ? listen : splitListen(String(listen ?? port))
  return { host: given?.host ?? '127.0.0.1', port: given?.port ?? port }
}

function storeOf(store: NonNullable<Config['store']>): StoreSettings {
  const given = typeof store === 'object' ? store : store === 'memory' ? {} : { url: store }
  const { url, cluster, ...rest } = given
  return {
    kind: url !== undefined ? 'redis' : cluster ? 'cluster' : 'memory',
    urls: url !== undefined ? [url] : (cluster ?? []),
    ...storeDefaults,
    ...rest,
  }
}

/** Assignments are kept beside the store by default: in Redis, or in memory. */
function assignmentsOf({ assignments, store }: Config): AssignmentSettings {
  const inRedis = storeOf(store ?? 'memory').kind !== 'memory'
  const kept = assignments ?? (inRedis ? 'redis' : 'memory')
  return kept === 'memory' || kept === 'redis' ? { kind: kept } : { kind: 'file', file: kept }
}

function decisionLogOf(log: Config['decisionLog']): DecisionLogSettings | undefined {
  if (log === undefined) return undefined
  const given = typeof log === 'string' ? { file: log } : log
  return { maxBytes: 104_857_600, files: 5, ...given }
}

function routeOf(
  route: Route,
  key: readonly KeyPart[],
  upstream: UpstreamSettings | undefined,
): RouteSettings {
  const headers = Object.entries(route.match?.headers ?? {})
  return {
    name: routeName(route),
    methods: (route.methods ?? []).map((method) => method.toUpperCase()),
    path: route.path,
    host: route.host?.toLowerCase() ?? '',
    headers: mapTable(
      Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value])),
      (value) => value,
    ),
    key: route.key === undefined ? key : keyOf(route.key),
    cost: route.cost ?? 1,
    rules: route.rules === undefined ? undefined : rulesOf(route.rules),
    shadow: route.shadow ?? false,
    isOpen: route.open ?? false,
    upstream,
  }
}

function keyOf(key: NonNullable<Config['key']>): readonly KeyPart[] {
  return (typeof key === 'string' ? [key] : key).map((part) => {
    if (part === 'address' || part === 'route' || part === 'jwt') return { from: part }
    const [from, name] = part.split(':')
    return { from: from as 'header' | 'api-key', name: name.toLowerCase() }
  })
}

function upstreamOf(
  name: string,
  upstream: NonNullable<Config['upstreams']>[string],
): UpstreamSettings {
  const { url, timeoutMs = 30_000 } = typeof upstream === 'string' ? { url: upstream } : upstream
  return { name, url: url === 'echo' ? 'echo:' : new URL(url).origin, timeoutMs }
}

function tokenOf(
  token: NonNullable<NonNullable<Config['admin']>['tokens']>[number],
): Settings['admin']['tokens'][number] {
  if (typeof token === 'string') return { token, access: 'full' }
  return { token: token.token, access: token.access ?? 'full' }
}

/** Maps a table to one without a prototype, since `constructor` may be the key of a client. */
function mapTable<A, B>(table: Readonly<Record<string, A>> = {}, map: (value: A) => B) {
  const result: Record<string, B> = Object.create(null)
  for (const [name, value] of Object.entries(table)) result[name] = map(value)
  return result
}
