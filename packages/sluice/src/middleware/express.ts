import type { Request, RequestHandler, Response } from 'express'
import { connect } from '../http/connect.ts'
import { ofExpress } from '../http/framework.ts'
import type { AnyRules, RateLimitOptions } from '../http/http-options.ts'
import type { RequestLimit } from '../http/request-limit.ts'

export type {
  Ending,
  Limited,
  RateLimitOptions,
  RefusalChange,
  Report,
  RequestCost,
  RequestKey,
  RequestLimit,
  RequestPermit,
} from '../http/http-options.ts'

declare global {
  namespace Express {
    interface Request {
      /** What `rateLimit` has decided, and the permit if there is one; undefined if it did not count. */
      rateLimit?: RequestLimit
    }
  }
}

/** rateLimit is a middleware for Express 4 and 5: `app.use(rateLimit({ rules }))`. */
export function rateLimit<const Rules extends AnyRules>(
  options: RateLimitOptions<Request, Response, Rules>,
): RequestHandler {
  return connect(options, ofExpress)
}
