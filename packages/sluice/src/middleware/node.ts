import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect } from '../http/connect.ts'
import type { RateLimitOptions } from '../http/http-options.ts'

export type { Limited, RateLimitOptions, Report } from '../http/http-options.ts'

/**
 * rateLimit is for Node's plain `http`: `limit(request, response, next)` answers a refused request
 * itself and calls `next` for one that may go ahead.
 */
export function rateLimit(
  options: RateLimitOptions<IncomingMessage, ServerResponse>,
): (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => void {
  return connect(options)
}
