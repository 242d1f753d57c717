import { type IncomingHttpHeaders, type IncomingMessage, METHODS } from 'node:http'
import { pipeline, type Readable, Transform } from 'node:stream'
import replyFrom from '@fastify/reply-from'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { createLimiter, tokenBucket } from 'sluice'
import { PROBLEM_TYPE, type Problem, problem, problemText } from '../problem.ts'
import type { Settings, UpstreamSettings } from '../settings.ts'
import { clientHeaders, upstreamHeaders } from './forwarding.ts'
import { plainPath } from './path.ts'
import type { Asked } from './router.ts'
import type { Route } from './routes.ts'
import { addUpgrades } from './upgrade.ts'

/** GatewayOptions are what a gateway is made of; `current` may change between two requests. */
export interface GatewayOptions {
  /** What cannot change without a restart: sizes and times. */
  readonly settings: Settings
  current(): {
    /** Whether a peer is a proxy that is believed. */
    isProxy(address: string): boolean
    find(asked: Asked): Route | undefined
  }
  readonly logger: Logger
  onProxied(told: { route: string; upstream: string; status: number; seconds: number }): void
}

const routeOf = Symbol('route')
const typeOf = Symbol('type')
const startOf = Symbol('start')
type Marked = IncomingMessage & { [routeOf]?: Route; [typeOf]?: string; [startOf]?: number }

/** startedMs is when the gateway began with a request, by `performance.now()`. */
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
    // A client that neither sends nor reads is not waited for.
    connectionTimeout: requestTimeoutMs + longestTimeoutMs(settings),
    http: {
      maxHeaderSize: headerBytes,
      requireHostHeader: true,
      headersTimeout: requestTimeoutMs,
      connectionsCheckingInterval: 1_000,
    },
    exposeHeadRoutes: false,
    onProtoPoisoning: 'ignore',
    frameworkErrors: (_error, _request, reply) => void send(reply, badPath),
  })
  app.server.maxConnections = connections
  for (const method of METHODS) {
    if (method === 'CONNECT' || method === 'GET' || method === 'HEAD') continue
    app.addHttpMethod(method, { hasBody: true, overrideExisting: true })
  }
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, payload, done) =>
    done(
      null,
      pipeline(payload, sized(bodyBytes), () => {}),
    ),
  )
  await app.register(replyFrom, {
    // As many as there can be clients, so that nobody waits for those of others.
    undici: { connections, pipelining: 1, keepAliveTimeout: 10_000 },
    disableRequestLogging: true,
  })

  function routeFor(request: IncomingMessage): Route | Problem {
    const path = plainPath(request.url ?? '')
    if (path === undefined) return badPath
    if (!isHost(request)) return badHost
    const asked = {
      method: request.method ?? '',
      path,
      host: request.headers.host,
      header: (name: string) => one(request.headers[name]),
    }
    return current().find(asked) ?? unknownRoute
  }

  const cutAll = addUpgrades(app.server, {
    find: routeFor,
    isProxy: (address) => current().isProxy(address),
  })
  app.addHook('preClose', (done) => {
    cutAll()
    done()
  })

  app.addHook('onRequest', (request, reply, next) => {
    if (Number(request.raw.headers['content-length'] ?? 0) > bodyBytes) {
      hangUp(request, reply)
      return void send(reply, tooLarge)
    }
    if (hasStrayBody(request.raw)) {
      hangUp(request, reply)
      return void send(reply, strayBody)
    }
    const route = routeFor(request.raw)
    if ('status' in route) return void send(reply, route)
    const marked = request.raw as Marked
    marked[routeOf] = route
    marked[startOf] = performance.now()
    const go = marked.headers['content-type'] === undefined ? next : () => next(hideType(marked))
    if (route.limit) route.limit(request.raw, reply.raw, go)
    else go()
  })

  /** One line a second for each upstream is enough to know. */
  const lines = createLimiter(tokenBucket({ limit: 1, per: '1s' }))
  const warn = ({ name, url }: UpstreamSettings, error: Error) => {
    if (!lines.allow(name)) return
    const { message, cause } = error as Error & { cause?: { code?: string; message?: string } }
    const why = cause?.code ?? cause?.message ?? message
    logger.warn({ upstream: name, url, error: why }, 'an upstream does not answer')
  }

  app.all('/*', (request, reply) => {
    const { settings: route } = (request.raw as Marked)[routeOf]!
    const { upstream } = route
    if (!upstream) return send(reply, nothingBehind)
    const startMs = performance.now()
    reply.raw.once('close', () =>
      onProxied({
        route: route.name,
        upstream: upstream.name,
        status: reply.raw.statusCode,
        seconds: (performance.now() - startMs) / 1_000,
      }),
    )
    if (upstream.url === 'echo:') return echo(request, reply)
    return pass(request, reply, upstream, current().isProxy, warn)
  })
  app.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) => {
    const status = error.statusCode ?? 500
    // That a client has gone is no news.
    if (status >= 500 && !reply.raw.destroyed) logger.error(error)
    return send(reply, problem(status, status >= 500 ? 'Something is wrong here.' : error.message))
  })
  return app
}

function pass(
  request: FastifyRequest,
  reply: FastifyReply,
  upstream: UpstreamSettings,
  isProxy: (address: string) => boolean,
  warn: (upstream: UpstreamSettings, error: Error) => void,
) {
  const { body } = request
  if (body instanceof Transform) {
    body.once('error', () => hangUp(request, reply))
    // An upstream that waits for the rest of a body must not wait for a client that has gone.
    reply.raw.once('close', () => body.destroy())
  }
  const ours = moveFields(reply)
  return reply.from(`${upstream.url}${request.raw.url}`, {
    timeout: upstream.timeoutMs,
    // An upstream that has enough is not asked again.
    retriesCount: 0,
    retryDelay: () => null,
    rewriteRequestHeaders: (_request, headers) =>
      upstreamHeaders(request.raw, withType(request.raw, headers as never), isProxy) as never,
    rewriteHeaders: (headers) => clientHeaders(headers as never, ours) as never,
    onResponse: (_request, reply, response) => {
      const { stream, statusCode } = response as unknown as { stream: Readable; statusCode: number }
      if (statusCode !== 304) return void reply.send(stream)
      // It may tell the length of what it does not send, over which undici stumbles.
      stream.on('error', () => {}).resume()
      reply.send()
    },
    onError: (reply, { error }) => {
      if (isOversized(request.body)) return void send(reply as FastifyReply, tooLarge)
      const isLate = /timeout/i.test(`${(error as { code?: string }).code} ${error.message}`)
      if (!request.raw.destroyed) warn(upstream, error)
      send(reply as FastifyReply, isLate ? tooLate : unreachable)
    },
  })
}

/** Fastify would look at it; what a body is, is between the client and the upstream. */
function hideType(request: Marked): undefined {
  request[typeOf] = request.headers['content-type']
  request.headers['content-type'] = 'application/octet-stream'
}

function withType(request: Marked, headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const type = request[typeOf]
  return type === undefined ? headers : { ...headers, 'content-type': type }
}

/** Moves what was written to Node's response to Fastify's, which is quicker than to merge the two. */
function moveFields(reply: FastifyReply): ReadonlySet<string> {
  const { raw } = reply
  const names = raw.getHeaderNames()
  for (const name of names) {
    reply.header(name, raw.getHeader(name))
    raw.removeHeader(name)
  }
  return new Set(names.filter((name) => name.includes('ratelimit')))
}

const OVERSIZED = new Error('the body is too large')

/** Passes so many bytes on, and then fails: a body need not say how long it is. */
function sized(mostBytes: number): Transform {
  let bytes = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length
      if (bytes > mostBytes) done(OVERSIZED)
      else done(null, chunk)
    },
  })
}

function isOversized(body: unknown): boolean {
  return body instanceof Transform && body.errored === OVERSIZED
}

/** Nobody reads on: a client that is told so must stop sending. */
function hangUp(request: FastifyRequest, reply: FastifyReply): void {
  if (reply.raw.headersSent) reply.raw.destroy()
  else reply.raw.once('finish', () => request.raw.destroy())
}

/** The built-in upstream: says what it got. */
function echo(request: FastifyRequest, reply: FastifyReply) {
  const { method, url } = request.raw
  const headers = withType(request.raw, request.raw.headers)
  return reply.send({ hello: 'this is the echo of sluice', method, url, headers })
}

/** What hardly anybody sends, and no proxy passes on reliably; better said than lost. */
function hasStrayBody({ method, headers }: IncomingMessage): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers
  return length !== '0' || encoding !== undefined
}

function longestTimeoutMs({ routes }: Settings): number {
  return Math.max(0, ...routes.map(({ upstream }) => upstream?.timeoutMs ?? 0))
}

/** One Host, and a name or an address: another spelling would dodge the route of a host. */
function isHost({ headers, rawHeaders }: IncomingMessage): boolean {
  let hosts = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i].length === 4 && rawHeaders[i].toLowerCase() === 'host') hosts += 1
  }
  return hosts === 1 && /^([\w-]+(\.[\w-]+)*\.?|\[[\da-f:.]+\])(:\d*)?$/i.test(headers.host ?? '')
}

function one(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value
}

function send(reply: FastifyReply, told: Problem): FastifyReply {
  return reply.code(told.status).type(PROBLEM_TYPE).send(problemText(told))
}

const badPath = problem(
  400,
  'The path is not clear: it has dot segments, encoded slashes or something unreadable.',
)
const badHost = problem(400, 'The request must have one Host, a name or an address.')
const unknownRoute = problem(404, 'No route is meant for this request.')
const nothingBehind = problem(404, 'The route has no upstream.')
const unreachable = problem(502, 'The upstream could not be reached, or broke off.')
const tooLate = problem(504, 'The upstream did not answer in time.')
const strayBody = problem(
  400,
  'A body of a GET or HEAD request is not passed on. Send it with POST or QUERY.',
)
const tooLarge = problem(413, 'The body is larger than this gateway passes on.')
