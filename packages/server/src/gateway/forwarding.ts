import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { BlockList, isIP, isIPv6 } from 'node:net'

/** Hop-by-hop headers, which concern one connection only. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'expect',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/**
 * Headers that only a trusted proxy may send: they name the client and the original request, and
 * some servers believe them. CGI reads `_` as `-`.
 */
const FORWARDED =
  /^(forwarded|x[-_](forwarded[-_].*|real[-_]ip|rewrite[-_]url|original[-_](host|method|ur[il])))$/

const forwarded = { has: (name: string) => FORWARDED.test(name) }

const NONE: ReadonlySet<string> = new Set()

/**
 * upstreamHeaders are the headers that the upstream gets: without hop-by-hop headers, and with the
 * address of the peer at the end of X-Forwarded-For. Forwarding headers of the request are passed
 * on only if the peer is a trusted proxy.
 */
export function upstreamHeaders(
  request: IncomingMessage,
  headers: IncomingHttpHeaders,
  isProxy: (address: string) => boolean,
): IncomingHttpHeaders {
  const peer = request.socket.remoteAddress ?? 'unknown'
  const removed = isProxy(peer) ? NONE : forwarded
  const kept = without(headers, request.headers.connection, removed)
  const before = kept['x-forwarded-for']
  kept['x-forwarded-for'] = before === undefined ? peer : `${before}, ${peer}`
  kept['x-forwarded-proto'] ??= 'encrypted' in request.socket ? 'https' : 'http'
  if (request.headers.host !== undefined) kept['x-forwarded-host'] ??= request.headers.host
  return kept
}

/** clientHeaders are the headers of the upstream's response that the client gets. */
export function clientHeaders(
  headers: IncomingHttpHeaders,
  ours: ReadonlySet<string>,
): IncomingHttpHeaders {
  // undici gives a list when the header came more than once.
  const connection: string | string[] | undefined = headers.connection
  // The gateway's rate-limit headers replace those of the upstream, whose limits may be higher.
  return without(headers, connection === undefined ? undefined : String(connection), ours)
}

/** limitFields are the names of the rate-limit headers of a response. */
export function limitFields(response: ServerResponse): ReadonlySet<string> {
  return new Set(response.getHeaderNames().filter((name) => name.includes('ratelimit')))
}

/** Copies headers without hop-by-hop headers and `others`; deleting from an object is slower. */
function without(
  headers: IncomingHttpHeaders,
  connection: string | undefined,
  others: { has(name: string): boolean },
): IncomingHttpHeaders {
  const named = connection === undefined ? NONE : namedBy(connection)
  const kept: IncomingHttpHeaders = {}
  for (const name in headers) {
    if (HOP_BY_HOP.has(name) || others.has(name) || named.has(name)) continue
    kept[name] = headers[name]
  }
  return kept
}

/** The headers that Connection declares as hop-by-hop. */
function namedBy(connection: string): ReadonlySet<string> {
  if (connection === 'keep-alive' || connection === 'close') return NONE
  return new Set(
    connection
      .toLowerCase()
      .split(',')
      .map((name) => name.trim()),
  )
}

/**
 * proxyList tells which peers are trusted proxies: all of them for a number, or those of a list.
 */
export function proxyList(trustProxy: number | readonly string[]): (address: string) => boolean {
  if (typeof trustProxy === 'number') return () => trustProxy > 0
  const list = new BlockList()
  for (const text of trustProxy) {
    const [address, bits] = text.split('/')
    const family = isIPv6(address) ? 'ipv6' : 'ipv4'
    if (bits === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(bits), family)
  }
  return (address) => {
    const plain = address.replace(/^::ffff:(?=\d+\.)/, '')
    return isIP(plain) !== 0 && list.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4')
  }
}
