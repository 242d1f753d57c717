import type { Request, RequestHandler, Response } from 'express'
import { connect } from '../http/connect.ts'
import type { RateLimitOptions } from '../http/http-options.ts'

export type { Limited, RateLimitOptions, Report } from '../http/http-options.ts'

/** rateLimit is a middleware for Express 4 and 5: `app.use(rateLimit({ rules }))`. */
export function rateLimit(options: RateLimitOptions<Request, Response>): RequestHandler {
  return connect(options)
}
