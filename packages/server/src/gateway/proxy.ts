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

/** ProxyOptions are what requests are passed on by. */
export interface ProxyOptions {
  /** How many there are to an upstream at most. */
  readonly connections: number
  /** Whether a peer is a proxy that is believed. */
  isProxy(address: string): boolean
  readonly onFailure: OnFailure
}

/** Proxy passes requests on, and answers with what comes back. */
export interface Proxy {
  pass(request: FastifyRequest, reply: FastifyReply, upstream: UpstreamSettings): FastifyReply
  /** Hangs up on all upstreams. */
  close(): Promise<void>
}

/**
 * createProxy passes on what a request asks for byte by byte: no path is normalised and no query
 * decoded. Whoever calls it has made sure that an upstream reads the path as we do.
 */
export function createProxy({ connections, isProxy, onFailure }: ProxyOptions): Proxy {
  /** By how long connecting may take: undici knows that of an agent, not of a request. */
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
    // A client that has gone sends nothing more, and waits for nothing.
    const client = new EventEmitter()
    reply.raw.once('close', () => {
      body?.destroy()
      client.emit('abort')
    })
    const ours = moveFields(reply)
    const headers = { ...withType(raw), host: hostOf(upstream) }
    const asked: Dispatcher.RequestOptions = {
      origin: upstream.url,
      path: raw.url ?? '/',
      method: raw.method as Dispatcher.HttpMethod,
      headers: upstreamHeaders(raw, headers, isProxy),
      body,
      headersTimeout: upstream.timeoutMs,
      bodyTimeout: upstream.timeoutMs,
      signal: client,
    }
    agentFor(upstream).request(asked, (error, response) => {
      if (error) return fail(error)
      // What is no status, or one that nobody waits for.
      if (response.statusCode < 200 || response.statusCode > 599) {
        response.body.on('error', () => {}).destroy()
        return fail(new Error(`it answered with ${response.statusCode}`))
      }
      try {
        give(request, reply, response, ours)
      } catch (error) {
        // Nobody above would catch it, and the process would end.
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
      // No fault of the upstream if the client has gone, or was cut off: the response knows later.
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
  // The rest of a body that is still coming is in the way of a next request.
  if (!request.raw.complete) hangUp(request, reply)
  reply.code(statusCode)
  if (statusCode !== 304) return void reply.send(body)
  // It may tell the length of what it does not send, over which undici stumbles.
  body.on('error', () => {}).resume()
  reply.send()
}

const hosts = new WeakMap<UpstreamSettings, string>()

function hostOf(upstream: UpstreamSettings): string {
  const known = hosts.get(upstream) ?? new URL(upstream.url).host
  hosts.set(upstream, known)
  return known
}

/** Moves what was written to Node's response to Fastify's, which is quicker than to merge the two. */
function moveFields(reply: FastifyReply): ReadonlySet<string> {
  const { raw } = reply
  const ours = limitFields(raw)
  for (const name of raw.getHeaderNames()) {
    reply.header(name, raw.getHeader(name))
    raw.removeHeader(name)
  }
  return ours
}
