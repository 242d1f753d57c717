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

/** UpgradeOptions are how the route of a request is found, and what happens without an upstream. */
export interface UpgradeOptions {
  find(request: IncomingMessage): Route | Problem
  isProxy(address: string): boolean
  readonly onFailure: OnFailure
}

/**
 * addUpgrades passes WebSockets on: the request that opens one is limited as any other, and after
 * that the bytes go both ways as they come. The result cuts all of them, also those that are still
 * being opened, and no more are opened from then on.
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
    // Answers come in the order of requests, and one may still be under way.
    if (before && !before.closed) before.once('close', next)
    else next()
  })

  function begin(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    // The client has left meanwhile, but for what is still being sent to it.
    if (socket.readableEnded) return void socket.end()
    // Nobody has to take up an offer to speak something else: it is a request like any other.
    if (!isWebSocket(request)) {
      // Node adds them again, and has not taken them away.
      for (const event of ['error', 'pause', 'resume']) socket.removeAllListeners(event)
      socket.unshift(Buffer.concat([Buffer.from(plainHead(request), 'latin1'), head]))
      return void server.emit('connection', socket)
    }
    open.add(socket)
    socket.once('timeout', leave).once('close', () => open.delete(socket))
    // Half a connection is no WebSocket, and Node would keep it.
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
    const asked = send({ ...to, timeout: upstream.timeoutMs, agent: false })
    asked.once('timeout', () => asked.destroy(late()))
    // Whoever leaves before the upstream has answered is not waited for.
    socket.once('close', () => asked.destroy())
    const fail = (error: Error) => {
      if (response.headersSent || socket.destroyed) return
      onFailure(upstream, error)
      answer(response, failureProblem(error))
    }
    asked.on('error', fail)
    asked.once('response', (refused) => {
      const { statusCode = 0 } = refused
      if (statusCode < 200 || statusCode > 599) {
        refused.destroy()
        return fail(new Error(`it answered with ${statusCode}`))
      }
      response.writeHead(statusCode, clientHeaders(refused.headers, limitFields(response)))
      pipeline(refused, response, () => {})
    })
    asked.once('upgrade', (accepted, other, otherHead) => {
      asked.setTimeout(0)
      request.socket.setTimeout(0)
      other.on('error', () => socket.destroy())
      socket.once('close', () => other.destroy())
      other.once('close', () => socket.destroy())
      // From here on the upstream is told when a client says no more.
      socket.off('end', leave)
      response.detachSocket(socket as never)
      socket.write(headText(accepted, response), 'latin1')
      if (otherHead.length > 0) socket.write(otherHead)
      if (head.length > 0) other.write(head)
      other.pipe(socket).pipe(other)
    })
    asked.end()
  }

  return () => {
    isClosing = true
    for (const socket of open) socket.destroy()
  }
}

function leave(this: Duplex): void {
  this.destroy()
}

/** Only a GET opens one, and nobody upgrades from HTTP/1.0. */
function isWebSocket({ method, httpVersion, headers }: IncomingMessage): boolean {
  const isOffer = headers.upgrade?.toLowerCase() === 'websocket'
  return isOffer && method === 'GET' && httpVersion === '1.1'
}

/**
 * onlyWebSockets is for http.createServer: newer Nodes then take all other offers for plain requests.
 * Where Node does not know it yet, `addUpgrades` makes them so.
 */
export const onlyWebSockets: object = { shouldUpgradeCallback: isWebSocket }

/** The answer that opens the socket, as it came, but for what we say about limits. */
function headText({ statusMessage, rawHeaders }: IncomingMessage, response: ServerResponse) {
  const lines = [`HTTP/1.1 101 ${statusMessage || 'Switching Protocols'}`]
  const ours = limitFields(response)
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (!ours.has(rawHeaders[i].toLowerCase())) lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`)
  }
  for (const [name, value] of Object.entries(response.getHeaders())) lines.push(`${name}: ${value}`)
  return `${lines.join('\r\n')}\r\n\r\n`
}

function answer(response: ServerResponse, told: Problem): void {
  response.writeHead(told.status, { 'content-type': PROBLEM_TYPE }).end(problemText(told))
}

const nothing = problem(404, 'No upstream here speaks WebSocket.')

/** Node only says that nothing has come, and leaves the error to us. */
function late(): Error {
  return Object.assign(new Error('it did not answer in time'), { code: 'ETIMEDOUT' })
}

/** What makes the offer: the names of fields, and what Connection says of them. */
const OFFER = new Set(['upgrade', 'http2-settings'])

/** The head of a request without its offer, as it would have come. */
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
