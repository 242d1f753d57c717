import { EventEmitter } from 'node:events'
import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Agent, type Dispatcher } from 'undici'
import type { UpstreamSettings } from '../settings.ts'
import { answer } from './answer.ts'
import { bodyFault } from './body.ts'
import { withType } from './content-type.ts'
import { failureProblem, type OnFailure } from './failure.ts'
import { clientHeaders, limitFields, upstreamHeaders } from './forwarding.ts'
import { hangUp } from './hang-up.ts'

/** ProxyOptions are the parts of a proxy. */
export interface ProxyOptions {
  /** The largest number of connections to each upstream. */
  readonly connections: number
  /** Whether a peer is a trusted proxy. */
  isProxy(address: string): boolean
  readonly onFailure: OnFailure
}

/** Proxy passes requests on to upstreams, and their responses back. */
export interface Proxy {
  pass(request: FastifyRequest, reply: FastifyReply, upstream: UpstreamSettings): FastifyReply
  /** Closes the connections to all upstreams. */
  close(): Promise<void>
}

/**
 * createProxy passes the request target on byte by byte: it normalizes no path and decodes no
 * query. The caller has checked that an upstream parses the path as the gateway does.
 */
export function createProxy({ connections, isProxy, onFailure }: ProxyOptions): Proxy {
  /** By connect timeout, which undici knows for an agent and not for a request. */
  const agents = new Map<number, Agent>()

  function agentFor({ timeoutMs }: UpstreamSettings): Agent {
    let agent = agents.get(timeoutMs)
    if (!agent) {
      const connect = { timeout: timeoutMs }
      agent = new Agent({ connections, pipelining: 1, keepAliveTimeout: 10_000, connect })
      agents.set(timeoutMs, agent)
    }
    return agent
  }

  function pass(request: FastifyRequest, reply: FastifyReply, upstream: UpstreamSettings) {
    const { raw } = request
    const { socket } = raw
    const body = request.body instanceof Readable ? request.body : null
    body?.once('error', () => hangUp(request, reply))
    // After the client has disconnected, neither its body nor the response is needed.
    const client = new EventEmitter()
    reply.raw.once('close', () => {
      body?.destroy()
      client.emit('abort')
    })
    const ours = moveFields(reply)
    const headers = { ...withType(raw), host: hostOf(upstream) }
    const options: Dispatcher.RequestOptions = {
      origin: upstream.url,
      path: raw.url ?? '/',
      method: raw.method as Dispatcher.HttpMethod,
      headers: upstreamHeaders(raw, headers, isProxy),
      body,
      headersTimeout: upstream.timeoutMs,
      bodyTimeout: upstream.timeoutMs,
      signal: client,
    }
    agentFor(upstream).request(options, (error, response) => {
      if (error) return fail(error)
      // An invalid status, or an informational one.
      if (response.statusCode < 200 || response.statusCode > 599) {
        response.body.on('error', () => {}).destroy()
        return fail(new Error(`it answered with ${response.statusCode}`))
      }
      try {
        give(request, reply, response, ours)
      } catch (error) {
        // An uncaught exception in this callback would end the process.
        response.body.on('error', () => {}).destroy()
        onFailure(upstream, error as Error)
        reply.raw.destroy()
      }
    })
    return reply

    function fail(error: Error): void {
      if (reply.sent) return
      const wrong = bodyFault(body)
      if (wrong) return void answer(reply, wrong)
      // Not the upstream's fault if the client disconnected; the response notices that later.
      if (!socket.destroyed) onFailure(upstream, error)
      answer(reply, failureProblem(error))
    }
  }

  return {
    pass,
    async close() {
      await Promise.all([...agents.values()].map((agent) => agent.destroy()))
    },
  }
}

function give(
  request: FastifyRequest,
  reply: FastifyReply,
  { statusCode, headers, body }: Dispatcher.ResponseData,
  ours: ReadonlySet<string>,
): void {
  if (reply.raw.destroyed) return void body.on('error', () => {}).destroy()
  const kept = clientHeaders(headers as IncomingHttpHeaders, ours)
  for (const name in kept) reply.header(name, kept[name])
  // A request body that is still arriving would be in the way of the next request.
  if (!request.raw.complete) hangUp(request, reply)
  reply.code(statusCode)
  if (statusCode !== 304) return void reply.send(body)
  // A 304 may have a Content-Length without a body, on which undici fails.
  body.on('error', () => {}).resume()
  reply.send()
}

const hosts = new WeakMap<UpstreamSettings, string>()

function hostOf(upstream: UpstreamSettings): string {
  const known = hosts.get(upstream) ?? new URL(upstream.url).host
  hosts.set(upstream, known)
  return known
}

/** Moves headers from Node's response to Fastify's, which is faster than merging the two. */
function moveFields(reply: FastifyReply): ReadonlySet<string> {
  const { raw } = reply
  const ours = limitFields(raw)
  for (const name of raw.getHeaderNames()) {
    reply.header(name, raw.getHeader(name))
    raw.removeHeader(name)
  }
  return ours
}
