import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import { parseRule } from 'sluice'
import { startApp } from '../../packages/server/src/app/app.ts'
import type { RouteSettings, Settings } from '../../packages/server/src/settings.ts'

/** settingsOf completes settings: free has 5 per hour, pro 100, and all routes lead to `upstream`. */
export function settingsOf(
  given: Partial<Settings>,
  routes: Partial<RouteSettings>[] = [{ path: '/**' }],
  upstream = 'echo:',
): Settings {
  return {
    listen: { host: '127.0.0.1', port: 0 },
    api: { host: '127.0.0.1', port: 0 },
    store: {
      kind: 'memory',
      urls: [],
      prefix: 'slu',
      maxKeys: 10_000,
      timeoutMs: 500,
      onFailure: 'local',
      fleetSize: 1,
    },
    tiers: {
      free: [parseRule('5/1h')],
      pro: [parseRule('100/1h')],
      internal: [parseRule('unlimited')],
    },
    defaultTier: 'free',
    clients: {},
    overrides: {},
    assignments: { kind: 'memory' },
    jwt: undefined,
    decisionLog: undefined,
    routes: routes.map((route, i) => ({
      name: `route-${i}`,
      methods: [],
      path: '/**',
      host: '',
      headers: {},
      key: [{ from: 'header', name: 'x-user' }],
      cost: 1,
      rules: undefined,
      shadow: false,
      isOpen: false,
      upstream: { name: 'main', url: upstream, timeoutMs: 2_000 },
      ...route,
    })),
    trustProxy: 0,
    allowList: [],
    denyList: [],
    headers: ['x', 'draft-11'],
    admin: { tokens: [] },
    limits: {
      bodyBytes: 1_000_000,
      headerBytes: 16_384,
      requestTimeoutMs: 10_000,
      connections: 1_000,
    },
    ...given,
  }
}

const closers: (() => unknown)[] = []

/** closeAll stops everything that a test has started. */
export async function closeAll(): Promise<void> {
  for (const close of closers.splice(0).reverse()) await close()
}

/**
 * start runs the service. `next` returns the settings of a reload, and `log` has the logged lines.
 */
export async function start(settings: Settings) {
  const log: { msg: string; [field: string]: unknown }[] = []
  const service = { next: () => settings, log }
  const app = await startApp({
    settings,
    version: '0.0.0',
    logger: pino({}, { write: (line: string) => void log.push(JSON.parse(line)) }),
    reread: async () => service.next(),
  })
  closers.push(() => app.close())
  return Object.assign(service, app)
}

/** serveUpstream starts a server behind the gateway that records its requests. */
export async function serveUpstream(
  listener: RequestListener = (request, response) => {
    request.pipe(response)
  },
): Promise<{ url: string; asked: IncomingMessage[]; server: Server }> {
  const asked: IncomingMessage[] = []
  const server = createServer((request, response) => {
    asked.push(request)
    listener(request, response)
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  closers.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, server }
}

/** as returns the options of a request by a user. */
export function as(user: string, init: RequestInit = {}): RequestInit {
  return { ...init, headers: { ...init.headers, 'x-user': user } }
}

/** json returns the options of a request with a JSON body. */
export function json(body: unknown, method = 'POST', headers = {}): RequestInit {
  return {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  }
}
