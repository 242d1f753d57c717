import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { BlockList, isIP, isIPv6 } from 'node:net'

/** Fields that are about one connection and not for whoever is behind it. */
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
 * What clients may only say through a proxy that is trusted: whom it speaks for, and for which path,
 * which some servers believe. CGI takes `_` for `-`.
 */
const FORWARDED =
  /^(forwarded|x[-_](forwarded[-_].*|real[-_]ip|rewrite[-_]url|original[-_](host|method|ur[il])))$/

const forwarded = { has: (name: string) => FORWARDED.test(name) }

const NONE: ReadonlySet<string> = new Set()

/**
 * upstreamHeaders are the fields of a request as an upstream gets them: without those of the
 * connection, and with the client's address at the end of X-Forwarded-For. What a client says about
 * proxies before us is passed on only if such are trusted.
 */
export function upstreamHeaders(
  request: IncomingMessage,
  headers: IncomingHttpHeaders,
  isProxy: (address: string) => boolean,
): IncomingHttpHeaders {
  const peer = request.socket.remoteAddress ?? 'unknown'
  const made = isProxy(peer) ? NONE : forwarded
  const kept = without(headers, request.headers.connection, made)
  const before = kept['x-forwarded-for']
  kept['x-forwarded-for'] = before === undefined ? peer : `${before}, ${peer}`
  kept['x-forwarded-proto'] ??= 'encrypted' in request.socket ? 'https' : 'http'
  if (request.headers.host !== undefined) kept['x-forwarded-host'] ??= request.headers.host
  return kept
}

/** clientHeaders are the fields of an upstream's response as a client gets them. */
export function clientHeaders(
  headers: IncomingHttpHeaders,
  ours: ReadonlySet<string>,
): IncomingHttpHeaders {
  // A list where it came more than once, and undici made the fields.
  const connection: string | string[] | undefined = headers.connection
  // What we say about limits holds here; what an upstream says may be more than we let through.
  return without(headers, connection === undefined ? undefined : String(connection), ours)
}

/** limitFields are the names of what was written about limits. */
export function limitFields(response: ServerResponse): ReadonlySet<string> {
  return new Set(response.getHeaderNames().filter((name) => name.includes('ratelimit')))
}

/** A copy without what is about the connection, and without these; deleting from one is slower. */
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

/** What a sender says is for this connection only. */
function namedBy(connection: string): ReadonlySet<string> {
  if (connection === 'keep-alive' || connection === 'close') return NONE
  return new Set(
    connection
      .toLowerCase()
      .split(',')
      .map((name) => name.trim()),
  )
}

/** proxyList tells which peers are proxies that are believed: all of a number, or those of a list. */
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
