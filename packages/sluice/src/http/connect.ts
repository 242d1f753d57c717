import type { IncomingMessage, ServerResponse } from 'node:http'
import { systemClock } from '../core/clock.ts'
import { isLater, type Later } from '../core/later.ts'
import { exposed, hasOrigin } from './fields.ts'
import type { Framework } from './framework.ts'
import { createGuard, type Entrance } from './guard.ts'
import type { RateLimitOptions } from './http-options.ts'
import type { RequestLimit } from './request-limit.ts'
import type { AnyRules } from './rule-types.ts'
import { whenDone } from './when-done.ts'

/** Next continues with the request, or reports an error. */
type Next = (error?: unknown) => void

/**
 * connect is `rateLimit` for Node's own requests and responses, which Express passes, too.
 */
export function connect<
  Request extends IncomingMessage,
  Response extends ServerResponse,
  Rules extends AnyRules,
>(
  options: RateLimitOptions<Request, Response, Rules>,
  framework?: Framework<Request>,
): (request: Request, response: Response, next: Next) => void {
  const guard = createGuard(options, framework !== undefined)

  /** Writes the guard's headers or refusal, and returns the entrance if the request may go ahead. */
  function act(entrance: Entrance, request: Request, response: Response): Later<Entrance | false> {
    const { refusal, limit, delayMs, spent } = entrance
    // Before anything that may throw.
    if (spent) {
      whenDone(request, response, (isWhole) => guard.finish(entrance, request, response, isWhole))
    }
    writeFields(request, response, entrance.fields)
    if (refusal) {
      for (const [name, value] of refusal.fields) response.setHeader(name, value)
      response.statusCode = refusal.status
      response.end(request.method === 'HEAD' ? undefined : refusal.body)
      return false
    }
    if (limit) (request as { rateLimit?: RequestLimit }).rateLimit = limit
    return delayMs > 0 ? systemClock.sleep(delayMs).then(() => entrance) : entrance
  }

  function proceed(entrance: Entrance, request: Request, response: Response, next: Next): void {
    try {
      next()
    } catch (error) {
      // A handler of plain `http` that throws leaves its response open.
      guard.finish(entrance, request, response, false)
      throw error
    }
  }

  return (request, response, next) => {
    const incoming = incomingOf(request, framework, request)
    if (!incoming) return void response.destroy()
    let acted: Later<Entrance | false>
    try {
      const entered = guard.enter(request, incoming)
      acted = isLater(entered)
        ? entered.then((entrance) => act(entrance, request, response))
        : act(entered, request, response)
    } catch (error) {
      next(error)
      return
    }
    if (!isLater(acted)) {
      if (acted) proceed(acted, request, response, next)
      return
    }
    acted.then(
      (entrance) => {
        if (entrance && !isGone(request, response)) proceed(entrance, request, response, next)
      },
      (error) => !isGone(request, response) && next(error),
    )
  }
}

/**
 * incomingOf returns the guard's view of a Node request; undefined if the connection is closed: a
 * request pipelined behind a hang-up has no address, and no client waits for its response.
 * `ofFramework` is the request as its framework passes it.
 */
export function incomingOf<Request>(
  request: IncomingMessage,
  framework?: Framework<Request>,
  ofFramework?: Request,
): NodeIncoming<Request> | undefined {
  const { socket } = request
  const peer = socket.remoteAddress
  if (socket.destroyed) return undefined
  // A reset TCP connection has lost only its remote address; a Unix socket has neither address.
  if (peer === undefined && socket.localAddress !== undefined) return undefined
  return new NodeIncoming(request, peer, framework, ofFramework)
}

/** isGone tells whether the connection of a request was closed since `incomingOf`. */
export function isGone({ socket }: IncomingMessage, response: ServerResponse): boolean {
  return socket.destroyed || response.closed
}

/** NodeIncoming is the guard's view of a Node request. */
export class NodeIncoming<Request = never> {
  readonly #request: IncomingMessage
  readonly peer: string | undefined
  readonly #framework: Framework<Request> | undefined
  readonly #ofFramework: Request | undefined

  constructor(
    request: IncomingMessage,
    peer: string | undefined,
    framework?: Framework<Request>,
    ofFramework?: Request,
  ) {
    this.#request = request
    this.peer = peer
    this.#framework = framework
    this.#ofFramework = ofFramework
  }

  get frameworkIp(): string | undefined {
    return this.#framework?.ip(this.#ofFramework as Request)
  }

  get frameworkTrust(): string | undefined {
    return this.#framework?.trusting(this.#ofFramework as Request)
  }

  get method(): string {
    return this.#request.method ?? ''
  }

  header(name: string): string | undefined {
    const value = this.#request.headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }
}

/**
 * Writes header fields, and exposes them to scripts of other origins if the request has an origin.
 */
function writeFields(
  request: IncomingMessage,
  response: ServerResponse,
  fields: Entrance['fields'],
): void {
  for (let i = 0; i < fields.length; i += 1) response.setHeader(fields[i][0], fields[i][1])
  if (fields.length === 0 || !hasOrigin(request)) return
  response.appendHeader('access-control-expose-headers', exposed(fields))
}
