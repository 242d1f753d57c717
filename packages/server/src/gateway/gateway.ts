import { type IncomingMessage, METHODS } from 'node:http'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { tokenBucket } from 'sluice'
import { localLimiter } from '../local-limiter.ts'
import { type Problem, problem } from '../problem.ts'
import type { Settings } from '../settings.ts'
import { answer, stopping } from './answer.ts'
import { bodyProblem, sized } from './body.ts'
import { hideType, withType } from './content-type.ts'
import type { OnFailure } from './failure.ts'
import { addLingering, discard, hangUp, hasHungUp, isLong } from './hang-up.ts'
import { headerReadings, unclearHeader } from './identity.ts'
import { exactPath, plainPath } from './path.ts'
import { createProxy } from './proxy.ts'
import { type Asked, isHostText } from './router.ts'
import type { Route } from './routes.ts'
import { addUpgrades, onlyWebSockets } from './upgrade.ts'

/** GatewayOptions are the parts of a gateway; `current` may change between two requests. */
export interface GatewayOptions {
  /** Settings that need a restart: sizes and times. */
  readonly settings: Settings
  current(): {
    /** Whether a peer is a trusted proxy. */
    isProxy(address: string): boolean
    find(asked: Asked): Route | undefined
  }
  readonly logger: Logger
  onProxied(response: { route: string; upstream: string; status: number; seconds: number }): void
}

const routeOf = Symbol('route')
const startOf = Symbol('start')
type Marked = IncomingMessage & { [routeOf]?: Route; [startOf]?: number }

/** startedMs is when the gateway began to handle a request, by `performance.now()`. */
export function startedMs(request: IncomingMessage): number | undefined {
  return (request as Marked)[startOf]
}

/** createGateway is the reverse proxy: it limits requests by their route and passes them on. */
export async function createGateway(options: GatewayOptions): Promise<FastifyInstance> {
  const { settings, current, logger, onProxied } = options
  const { bodyBytes, headerBytes, requestTimeoutMs, connections } = settings.limits
  const app = fastify({
    bodyLimit: bodyBytes,
    requestTimeout: requestTimeoutMs,
    forceCloseConnections: 'idle',
    // The timeout of clients that neither send nor read.
    connectionTimeout: requestTimeoutMs + longestTimeoutMs(settings),
    http: {
      maxHeaderSize: headerBytes,
      // The gateway answers missing hosts itself, so that `addUpgrades` sees every response.
      requireHostHeader: false,
      headersTimeout: requestTimeoutMs,
      connectionsCheckingInterval: 1_000,
      ...onlyWebSockets,
    },
    // During shutdown the gateway answers itself, with a problem; Fastify adds `Connection: close`.
    return503OnClosing: false,
    exposeHeadRoutes: false,
    onProtoPoisoning: 'ignore',
    frameworkErrors: (_error, _request, reply) => void answer(reply, badPath),
  })
  app.server.maxConnections = connections
  for (const method of METHODS) {
    if (method === 'CONNECT' || method === 'GET' || method === 'HEAD') continue
    app.addHttpMethod(method, { hasBody: true, overrideExisting: true })
  }
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, payload, done) => done(null, sized(payload, bodyBytes)))
  addLingering(app.server, bodyBytes)
  // Node would answer `100 Continue` by itself, before the limiter has decided.
  const expecting = new WeakSet<IncomingMessage>()
  app.server.on('checkContinue', (request, response) => {
    expecting.add(request)
    app.server.emit('request', request, response)
  })
  // A server may ignore other expectations.
  app.server.on('checkExpectation', (request, response) => {
    app.server.emit('request', request, response)
  })

  /** Logs one line per second and upstream at most. */
  const lines = localLimiter(tokenBucket({ limit: 1, per: '1s' }))
  const onFailure: OnFailure = ({ name, url }, { code, message }) => {
    if (!lines.allow(name)) return
    logger.warn({ upstream: name, url, error: code ?? message }, 'upstream failed')
  }
  const proxy = createProxy({
    // One for each client connection, so that no client waits for an upstream connection.
    connections,
    isProxy: (address) => current().isProxy(address),
    onFailure,
  })
  app.addHook('onClose', proxy.close)

  function routeFor(request: IncomingMessage): Route | Problem {
    const url = request.url ?? ''
    const path = plainPath(url)
    if (path === undefined) return badPath
    if (!isHost(request)) return badHost
    const asked = {
      method: request.method ?? '',
      path,
      exact: exactPath(url),
      host: request.headers.host,
      header: (name: string) => headerReadings(request, name),
    }
    const route = current().find(asked)
    if (!route) return unknownRoute
    return unclearHeader(request, route.identity) === undefined ? route : badIdentity
  }

  const cutAll = addUpgrades(app.server, {
    find: (request) => bodyProblem(request, bodyBytes) ?? routeFor(request),
    isProxy: (address) => current().isProxy(address),
    onFailure,
  })
  let isClosing = false
  app.addHook('preClose', (done) => {
    isClosing = true
    cutAll()
    done()
  })

  app.addHook('onRequest', (request, reply, next) => {
    if (hasHungUp(request.raw)) {
      // Its response would never be written, and Node would keep it queued.
      discard(request.raw.socket, bodyBytes)
      return void reply.hijack()
    }
    if (isClosing) return refuse(request, reply, stopping)
    const wrong = bodyProblem(request.raw, bodyBytes)
    if (wrong) {
      hangUp(request, reply)
      return void answer(reply, wrong)
    }
    const route = routeFor(request.raw)
    if ('status' in route) return refuse(request, reply, route)
    const marked = request.raw as Marked
    marked[routeOf] = route
    marked[startOf] = performance.now()
    const go = () => {
      if (expecting.has(marked)) reply.raw.writeContinue()
      hideType(marked)
      next()
    }
    if (route.limit) route.limit(request.raw, reply.raw, go)
    else go()
  })

  app.all('/*', (request, reply) => {
    const { settings: route } = (request.raw as Marked)[routeOf]!
    const { upstream } = route
    if (!upstream) return refuse(request, reply, nothingBehind)
    const startMs = performance.now()
    reply.raw.once('close', () =>
      onProxied({
        route: route.name,
        upstream: upstream.name,
        status: reply.raw.statusCode,
        seconds: (performance.now() - startMs) / 1_000,
      }),
    )
    if (upstream.url === 'echo:') {
      if (isLong(request.raw)) hangUp(request, reply)
      return echo(request, reply)
    }
    return proxy.pass(request, reply, upstream)
  })
  app.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) => {
    const status = error.statusCode ?? 500
    // A client that has disconnected is no error.
    if (status >= 500 && !reply.raw.destroyed) logger.error(error)
    return answer(reply, problem(status, status >= 500 ? 'Internal error.' : error.message))
  })
  return app
}

/** Answers without reading the body. */
function refuse(request: FastifyRequest, reply: FastifyReply, problem: Problem): void {
  if (isLong(request.raw)) hangUp(request, reply)
  answer(reply, problem)
}

/** The built-in upstream: answers with the request that it received. */
function echo(request: FastifyRequest, reply: FastifyReply) {
  const { method, url } = request.raw
  const headers = withType(request.raw)
  return reply.send({ hello: 'this is the echo of sluice', method, url, headers })
}

function longestTimeoutMs({ routes }: Settings): number {
  return Math.max(0, ...routes.map(({ upstream }) => upstream?.timeoutMs ?? 0))
}

/** Exactly one Host, a plain name or address: another spelling could bypass the route of a host. */
function isHost({ headers, rawHeaders }: IncomingMessage): boolean {
  let hosts = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i].length === 4 && rawHeaders[i].toLowerCase() === 'host') hosts += 1
  }
  return hosts === 1 && isHostText(headers.host ?? '')
}

const badPath = problem(
  400,
  'The path is ambiguous: it has dot segments, begins with //, or has encoded slashes or characters that are not allowed.',
)
const badHost = problem(
  400,
  'The request must have exactly one Host header, with a name or an address.',
)
const badIdentity = problem(
  400,
  'A header that identifies the client must be sent once, and must not be listed in Connection.',
)
const unknownRoute = problem(404, 'No route matches this request.')
const nothingBehind = problem(404, 'The route has no upstream.')
