import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect } from '../http/connect.ts'
import { logError } from '../http/guard.ts'
import type { RateLimitOptions } from '../http/http-options.ts'

export type { Limited, RateLimitOptions, Report } from '../http/http-options.ts'

/**
 * rateLimit is for Node's plain `http`: `limit(request, response, next)` answers a refused request
 * itself and calls `next` only for one that may go ahead. If something is wrong (a `key` that
 * throws, say) it answers with 500 and tells `onError`.
 */
export function rateLimit(
  options: RateLimitOptions<IncomingMessage, ServerResponse>,
): (request: IncomingMessage, response: ServerResponse, next: () => void) => void {
  const { onError = logError } = options
  const limit = connect(options)
  return (request, response, next) =>
    limit(request, response, (error) => {
      if (error === undefined) return next()
      onError(error, request)
      if (response.headersSent) return void response.destroy()
      for (const name of response.getHeaderNames()) response.removeHeader(name)
      response.statusCode = 500
      response.setHeader('content-type', 'application/problem+json')
      response.end(body)
    })
}

const body = JSON.stringify({ type: 'about:blank', title: 'Internal Server Error', status: 500 })
