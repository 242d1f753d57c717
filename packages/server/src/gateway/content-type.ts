import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'

const typeOf = Symbol('type')
type Marked = IncomingMessage & { [typeOf]?: string }

/**
 * hideType hides the Content-Type from Fastify, since only client and upstream interpret the body.
 */
export function hideType(request: IncomingMessage): void {
  const { headers } = request
  if (headers['content-type'] === undefined) return
  ;(request as Marked)[typeOf] = headers['content-type']
  headers['content-type'] = 'application/octet-stream'
}

/** withType returns the headers of a request with its original Content-Type. */
export function withType(request: IncomingMessage): IncomingHttpHeaders {
  const type = (request as Marked)[typeOf]
  return type === undefined ? request.headers : { ...request.headers, 'content-type': type }
}
