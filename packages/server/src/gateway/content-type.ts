import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'

const typeOf = Symbol('type')
type Marked = IncomingMessage & { [typeOf]?: string }

/** hideType keeps Fastify from looking at it: what a body is, is the client's and the upstream's. */
export function hideType(request: IncomingMessage): void {
  const { headers } = request
  if (headers['content-type'] === undefined) return
  ;(request as Marked)[typeOf] = headers['content-type']
  headers['content-type'] = 'application/octet-stream'
}

/** withType are the fields of a request as they came. */
export function withType(request: IncomingMessage): IncomingHttpHeaders {
  const type = (request as Marked)[typeOf]
  return type === undefined ? request.headers : { ...request.headers, 'content-type': type }
}
