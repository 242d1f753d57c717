import type { IncomingMessage, ServerResponse } from 'node:http'
import { createGuard, type Entrance } from './guard.ts'
import type { RateLimitOptions } from './http-options.ts'

/** Next goes on with the request, or reports an error. */
type Next = (error?: unknown) => void

/** connect is `rateLimit` for Node's own requests and responses, as Express and others pass them. */
export function connect<Request extends IncomingMessage, Response extends ServerResponse>(
  options: RateLimitOptions<Request, Response>,
): (request: Request, response: Response, next: Next) => void {
  const guard = createGuard(options)

  function act(entrance: Entrance, request: Request, response: Response, next: Next): void {
    writeFields(request, response, entrance.fields)
    const { refusal } = entrance
    if (refusal) {
      for (const [name, value] of refusal.fields) response.setHeader(name, value)
      response.statusCode = refusal.status
      response.end(request.method === 'HEAD' ? undefined : refusal.body)
      return
    }
    if (entrance.spent) {
      response.once('close', () => guard.settle(entrance, request, response))
    }
    next()
  }

  return (request, response, next) => {
    let entered: Entrance | Promise<Entrance>
    try {
      entered = guard.enter(request, new NodeIncoming(request))
    } catch (error) {
      next(error)
      return
    }
    if (!(entered instanceof Promise)) return act(entered, request, response, next)
    entered.then((entrance) => act(entrance, request, response, next)).catch(next)
  }
}

/** NodeIncoming is what the guard looks at of Node's request. */
export class NodeIncoming {
  readonly #request: IncomingMessage

  constructor(request: IncomingMessage) {
    this.#request = request
  }

  get method(): string {
    return this.#request.method ?? ''
  }

  get peer(): string | undefined {
    return this.#request.socket.remoteAddress
  }

  header(name: string): string | undefined {
    const value = this.#request.headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }
}

/** Writes fields, and lets scripts of other origins read them where there are such. */
function writeFields(
  { headers }: IncomingMessage,
  response: ServerResponse,
  fields: Entrance['fields'],
): void {
  for (const [name, value] of fields) response.setHeader(name, value)
  if (headers.origin === undefined || fields.length === 0) return
  response.appendHeader('Access-Control-Expose-Headers', exposed(fields))
}

/** exposed is the names of fields that scripts may want to read. */
export function exposed(fields: Entrance['fields']): string {
  return [...fields.map(([name]) => name), 'Retry-After'].join(', ')
}
