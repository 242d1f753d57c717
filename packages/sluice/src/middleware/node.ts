import type { IncomingMessage, ServerResponse } from 'node:http'
import { addressText } from '../http/address.ts'
import { checkGiven, trustOf } from '../http/check-options.ts'
import { clientAddress } from '../http/client-address.ts'
import { connect, NodeIncoming } from '../http/connect.ts'
import { logError } from '../http/guard.ts'
import type { AnyRules, RateLimitOptions, RequestOptions } from '../http/http-options.ts'
import { located } from '../http/located.ts'
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

/**
 * clientKey returns a function that gives the key of `rateLimit` for a client's address, for keys
 * that combine it with other data. Throws `SLUICE_OPTION` if the address is not known. The address
 * of a closed connection is known if `rateLimit` or `clientKey` has read it before.
 */
export function clientKey({
  trustProxy = 0,
  ipv6Bits = 64,
}: Pick<RequestOptions<never>, 'trustProxy' | 'ipv6Bits'> = {}): (
  request: IncomingMessage,
) => string {
  const trust = trustOf(trustProxy, false)
  return (request) => {
    const { address } = located(
      clientAddress(new NodeIncoming(request, request.socket.remoteAddress), trust),
    )
    return addressText(address, ipv6Bits)
  }
}

/**
 * rateLimitOf returns the decision about a request that `rateLimit` has admitted, and its permit if
 * it has one: `request.rateLimit`. undefined if it was not counted.
 */
export function rateLimitOf(request: IncomingMessage): RequestLimit | undefined {
  return (request as { rateLimit?: RequestLimit }).rateLimit
}

/**
 * rateLimit is for Node's plain `http`: `limit(request, response, next)` answers a refused request
 * itself and calls `next` only for an admitted one. After an error (such as a `key` that
 * throws) it answers with 500 and calls `onError`.
 */
export function rateLimit<const Rules extends AnyRules>(
  options: RateLimitOptions<IncomingMessage, ServerResponse, Rules>,
): (request: IncomingMessage, response: ServerResponse, next: () => void) => void {
  checkGiven(options)
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
