import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'

/** Fields that are about one connection and not for whoever is behind it. */
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]

/** What clients may only say through a proxy that is trusted. */
const FORWARDED = [
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-real-ip',
]

/**
 * upstreamHeaders are the fields of a request as an upstream gets them: without those of the
 * connection, and with the client's address at the end of X-Forwarded-For. What a client says about
 * proxies before us is passed on only if such are trusted.
 */
export function upstreamHeaders(
  request: IncomingMessage,
  headers: IncomingHttpHeaders,
  isProxied: boolean,
): IncomingHttpHeaders {
  const kept = withoutHops(headers, request.headers.connection)
  if (!isProxied) for (const name of FORWARDED) delete kept[name]
  const peer = request.socket.remoteAddress ?? 'unknown'
  const before = kept['x-forwarded-for']
  kept['x-forwarded-for'] = before === undefined ? peer : `${before}, ${peer}`
  kept['x-forwarded-proto'] ??= 'encrypted' in request.socket ? 'https' : 'http'
  if (request.headers.host !== undefined) kept['x-forwarded-host'] ??= request.headers.host
  return kept
}

/** clientHeaders are the fields of an upstream's response as a client gets them. */
export function clientHeaders(
  headers: IncomingHttpHeaders,
  ours: readonly string[],
): IncomingHttpHeaders {
  const kept = withoutHops(headers, headers.connection)
  // What we say about limits holds here; what an upstream says may be more than we let through.
  for (const name of ours) delete kept[name]
  return kept
}

function withoutHops(headers: IncomingHttpHeaders, connection: unknown): IncomingHttpHeaders {
  const kept = { ...headers }
  const named = typeof connection === 'string' ? connection.toLowerCase().split(',') : []
  for (const name of [...HOP_BY_HOP, ...named.map((each) => each.trim())]) delete kept[name]
  return kept
}
