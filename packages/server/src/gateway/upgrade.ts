import {
  request as httpRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type Server,
  ServerResponse,
} from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Socket } from 'node:net'
import { type Duplex, pipeline } from 'node:stream'
import { PROBLEM_TYPE, type Problem, problem, problemText } from '../problem.ts'
import type { UpstreamSettings } from '../settings.ts'
import { stopping } from './answer.ts'
import { failureProblem, type OnFailure } from './failure.ts'
import { clientHeaders, limitFields, upstreamHeaders } from './forwarding.ts'
import { hasHungUp } from './hang-up.ts'
import type { Route } from './routes.ts'

/**
 * UpgradeOptions say how to find the route of a request, and what to call when an upstream fails.
 */
export interface UpgradeOptions {
  find(request: IncomingMessage): Route | Problem
  isProxy(address: string): boolean
  readonly onFailure: OnFailure
}

/**
 * addUpgrades proxies WebSockets: the handshake request is limited like any other, and after that
 * bytes are passed on unchanged in both directions. The result closes all of them, also those whose
 * handshake is in progress, and refuses new ones from then on.
 */
export function addUpgrades(server: Server, options: UpgradeOptions): () => void {
  const { find, isProxy, onFailure } = options
  const open = new Set<Duplex>()
  let isClosing = false
  const answers = new WeakMap<Duplex, ServerResponse>()

  server.prependListener('request', ({ socket }, response) => answers.set(socket, response))
  server.on('upgrade', (request, socket, head) => {
    socket.on('error', leave)
    const before = answers.get(socket)
    const next = () => {
      if (!hasHungUp(request)) begin(request, socket, head)
    }
    // Responses are sent in the order of requests (pipelining), and one may still be in progress.
    if (before && !before.closed) before.once('close', next)
    else next()
  })

  function begin(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    // The client has closed its side meanwhile, and only waits for earlier responses.
    if (socket.readableEnded) return void socket.end()
    // A server may ignore other upgrades: the request is handled like any other.
    if (!isWebSocket(request)) {
      // Node adds these listeners again, and has not removed them.
      for (const event of ['error', 'pause', 'resume']) socket.removeAllListeners(event)
      socket.unshift(Buffer.concat([Buffer.from(plainHead(request), 'latin1'), head]))
      return void server.emit('connection', socket)
    }
    open.add(socket)
    socket.once('timeout', leave).once('close', () => open.delete(socket))
    // A half-closed connection is no WebSocket, and Node would keep it open.
    socket.once('end', leave)
    const response = new ServerResponse(request)
    response.assignSocket(socket as never)
    response.shouldKeepAlive = false
    response.once('finish', () => (socket as Socket).destroySoon())
    if (isClosing) return void answer(response, stopping)
    const route = find(request)
    if ('status' in route) return void answer(response, route)
    const { upstream } = route.settings
    if (!upstream || upstream.url === 'echo:') return void answer(response, nothing)
    const pass = () => {
      if (!socket.destroyed) tunnel(request, socket, head, response, upstream)
    }
    if (route.limit) route.limit(request, response, pass)
    else pass()
  }

  function tunnel(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    response: ServerResponse,
    upstream: UpstreamSettings,
  ): void {
    const url = new URL(upstream.url)
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest
    const headers = {
      ...upstreamHeaders(request, { ...request.headers, host: url.host }, isProxy),
      connection: 'Upgrade',
      upgrade: 'websocket',
    } as OutgoingHttpHeaders
    const { hostname, port, protocol } = url
    const to = { protocol, hostname, port, path: request.url, method: request.method, headers }
    const outgoing = send({ ...to, timeout: upstream.timeoutMs, agent: false })
    outgoing.once('timeout', () => outgoing.destroy(late()))
    // Cancel when the client disconnects before the upstream has answered.
    socket.once('close', () => outgoing.destroy())
    const fail = (error: Error) => {
      if (response.headersSent || socket.destroyed) return
      onFailure(upstream, error)
      answer(response, failureProblem(error))
    }
    outgoing.on('error', fail)
    outgoing.once('response', (refused) => {
      const { statusCode = 0 } = refused
      if (statusCode < 200 || statusCode > 599) {
        refused.destroy()
        return fail(new Error(`it answered with ${statusCode}`))
      }
      response.writeHead(statusCode, clientHeaders(refused.headers, limitFields(response)))
      pipeline(refused, response, () => {})
    })
    outgoing.once('upgrade', (accepted, other, otherHead) => {
      outgoing.setTimeout(0)
      request.socket.setTimeout(0)
      other.on('error', () => socket.destroy())
      socket.once('close', () => other.destroy())
      other.once('close', () => socket.destroy())
      // From here on the end of the client's side is passed on to the upstream.
      socket.off('end', leave)
      response.detachSocket(socket as never)
      socket.write(headText(accepted, response), 'latin1')
      if (otherHead.length > 0) socket.write(otherHead)
      if (head.length > 0) other.write(head)
      other.pipe(socket).pipe(other)
    })
    outgoing.end()
  }

  return () => {
    isClosing = true
    for (const socket of open) socket.destroy()
  }
}

function leave(this: Duplex): void {
  this.destroy()
}

/** WebSocket handshakes are GET requests of HTTP/1.1. */
function isWebSocket({ method, httpVersion, headers }: IncomingMessage): boolean {
  const isOffer = headers.upgrade?.toLowerCase() === 'websocket'
  return isOffer && method === 'GET' && httpVersion === '1.1'
}

/**
 * onlyWebSockets is an option of http.createServer: newer versions of Node then treat all other
 * upgrades as plain requests. On older versions `addUpgrades` does so.
 */
export const onlyWebSockets: object = { shouldUpgradeCallback: isWebSocket }

/** The head of the 101 response, unchanged but for the gateway's rate-limit headers. */
function headText({ statusMessage, rawHeaders }: IncomingMessage, response: ServerResponse) {
  const lines = [`HTTP/1.1 101 ${statusMessage || 'Switching Protocols'}`]
  const ours = limitFields(response)
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (!ours.has(rawHeaders[i].toLowerCase())) lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`)
  }
  for (const [name, value] of Object.entries(response.getHeaders())) lines.push(`${name}: ${value}`)
  return `${lines.join('\r\n')}\r\n\r\n`
}

function answer(response: ServerResponse, problem: Problem): void {
  response.writeHead(problem.status, { 'content-type': PROBLEM_TYPE }).end(problemText(problem))
}

const nothing = problem(404, 'This route has no upstream for WebSockets.')

/** Node only emits `timeout`; the error is made here. */
function late(): Error {
  return Object.assign(new Error('it did not answer in time'), { code: 'ETIMEDOUT' })
}

/** The headers of an upgrade, which Connection also lists. */
const OFFER = new Set(['upgrade', 'http2-settings'])

/** The head of a request as if it offered no upgrade. */
function plainHead({ method, url, httpVersion, headers, rawHeaders }: IncomingMessage): string {
  const lines = [`${method} ${url} HTTP/${httpVersion}`]
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i].toLowerCase()
    if (name === 'connection' || OFFER.has(name)) continue
    lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`)
  }
  const named = (headers.connection ?? '').split(',').map((name) => name.trim())
  lines.push(`Connection: ${named.filter((name) => !OFFER.has(name.toLowerCase())).join(', ')}`)
  return `${lines.join('\r\n')}\r\n\r\n`
}
