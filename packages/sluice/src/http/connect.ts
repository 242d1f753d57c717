import type { IncomingMessage, ServerResponse } from 'node:http'
import { exposed, hasOrigin } from './fields.ts'
import { createGuard, type Entrance, type Guard } from './guard.ts'
import type { RateLimitOptions } from './http-options.ts'

/** Next goes on with the request, or reports an error. */
type Next = (error?: unknown) => void

/** connect is `rateLimit` for Node's own requests and responses, as Express and others pass them. */
export function connect<Request extends IncomingMessage, Response extends ServerResponse>(
  options: RateLimitOptions<Request, Response>,
): (request: Request, response: Response, next: Next) => void {
  const guard = createGuard(options)

  /** Writes what the guard says, and tells whether the request may go ahead. */
  function act(entrance: Entrance, request: Request, response: Response): boolean {
    writeFields(request, response, entrance.fields)
    const { refusal } = entrance
    if (refusal) {
      for (const [name, value] of refusal.fields) response.setHeader(name, value)
      response.statusCode = refusal.status
      response.end(request.method === 'HEAD' ? undefined : refusal.body)
      return false
    }
    whenDone(guard, entrance, request, response, response)
    return true
  }

  return (request, response, next) => {
    const incoming = incomingOf(request)
    if (!incoming) return void response.destroy()
    let isAdmitted: boolean
    try {
      const entered = guard.enter(request, incoming)
      if (entered instanceof Promise) {
        entered
          .then((entrance) => act(entrance, request, response))
          .then(
            (isAdmitted) => isAdmitted && !isGone(request, response) && next(),
            (error) => !isGone(request, response) && next(error),
          )
        return
      }
      isAdmitted = act(entered, request, response)
    } catch (error) {
      next(error)
      return
    }
    if (isAdmitted) next()
  }
}

/** whenDone settles a request when its response is done, or its connection has gone. */
export function whenDone<Request, Response>(
  guard: Guard<Request, Response>,
  entrance: Entrance,
  request: Request,
  response: Response,
  raw: ServerResponse,
): void {
  if (!entrance.spent) return
  const settle = () => guard.settle(entrance, request, response, raw.writableEnded)
  // A response that waits for its turn is not told that its connection has gone.
  if (raw.closed || raw.req?.socket.destroyed) settle()
  else raw.once('close', settle)
}

/**
 * incomingOf is what the guard looks at of Node's request. Undefined if the connection has gone: a
 * request that was pipelined behind a hang-up has no address, and no client waits for its answer.
 */
export function incomingOf(request: IncomingMessage): NodeIncoming | undefined {
  const { socket } = request
  const peer = socket.remoteAddress
  if (socket.destroyed) return undefined
  // A TCP connection that was reset has lost its peer only; a Unix socket has no address at all.
  if (peer === undefined && socket.localAddress !== undefined) return undefined
  return new NodeIncoming(request, peer)
}

/** isGone tells whether the connection of a request has gone since `incomingOf`. */
export function isGone({ socket }: IncomingMessage, response: ServerResponse): boolean {
  return socket.destroyed || response.closed
}

/** NodeIncoming is what the guard looks at of Node's request. */
export class NodeIncoming {
  readonly #request: IncomingMessage
  readonly peer: string | undefined

  constructor(request: IncomingMessage, peer: string | undefined) {
    this.#request = request
    this.peer = peer
  }

  get method(): string {
    return this.#request.method ?? ''
  }

  header(name: string): string | undefined {
    const value = this.#request.headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }
}

/** Writes fields, and lets scripts of other origins read them where there are such. */
function writeFields(
  request: IncomingMessage,
  response: ServerResponse,
  fields: Entrance['fields'],
): void {
  for (let i = 0; i < fields.length; i += 1) response.setHeader(fields[i][0], fields[i][1])
  if (fields.length === 0 || !hasOrigin(request)) return
  response.appendHeader('access-control-expose-headers', exposed(fields))
}
