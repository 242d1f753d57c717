import { type Address, type AddressSet, parseAddress } from './address.ts'

/** AddressSource is the data from which a client's address is derived. */
export interface AddressSource {
  /** The remote address of the connection; undefined if the platform does not tell it. */
  readonly peer: string | undefined
  header(name: string): string | undefined
  /** The address that the framework derived by its own proxy setting, if it has one. */
  readonly frameworkIp?: string
  /** The name of that setting, if it trusts any proxy. */
  readonly frameworkTrust?: string
}

/**
 * Trust is the proxies whose forwarding headers are trusted: a number of them, those in certain
 * networks, or those that the framework trusts. Any other header may be forged by the client.
 */
export type Trust = number | 'framework' | AddressSet

/** Longer proxy chains are cut. */
const MOST_HOPS = 64

/** Only this many characters at the end of a header are read. */
const LONGEST_HEADER = 4_096

/** Found is a client's address as far as it is known. */
export interface Found {
  readonly address: Address | undefined
  /** Whether the address is that of a proxy that did not name its client. */
  readonly isVague: boolean
  /** Other possible addresses of the client. */
  readonly others?: readonly Address[]
}

/**
 * clientAddress walks from the connection back through trusted proxies, and returns the first
 * address that is not one of them. If an entry cannot be parsed, the proxy that wrote it counts as
 * the client. The same holds if both kinds of header are present and name different clients, since
 * a proxy may write one of them and the client the other.
 */
export function clientAddress(source: AddressSource, trust: Trust): Found {
  const peer = typeof source.peer === 'string' ? readAddress(source.peer) : undefined
  if (trust === 'framework') {
    // Express and Koa pass any text in the header, even if it is not an address.
    const address = readAddress(source.frameworkIp ?? '')
    return { address: address ?? peer, isVague: !address && Boolean(peer ?? source.frameworkIp) }
  }
  // Behind a platform's proxy the connection is unknown, but the number of proxies is known.
  const isHidden = source.peer === undefined && typeof trust === 'number'
  if ((!peer && !isHidden) || trust === 0) return { address: peer, isVague: false }
  const list = source.header('x-forwarded-for')
  const forwarded = source.header('forwarded')
  const byList = list === undefined ? undefined : walk(peer, trust, tail(list).split(','))
  if (forwarded === undefined) return byList ?? { address: peer, isVague: false }
  const byForwarded = walk(peer, trust, splitFromEnd(tail(forwarded), ',').map(forOf))
  if (!byList) return byForwarded
  const isSame = String(byList.address) === String(byForwarded.address)
  if (isSame) return byList
  const others = [byList.address, byForwarded.address].filter((each) => each !== undefined)
  return { address: peer, isVague: true, others }
}

/** Walks back through the entries of proxies, of which the last is the most recent. */
function walk(
  peer: Address | undefined,
  trust: number | AddressSet,
  hops: readonly string[],
): Found {
  let address = peer
  for (let i = 0; i < hops.length && i < MOST_HOPS; i += 1) {
    if (typeof trust === 'number' ? i >= trust : !address || !trust.has(address)) break
    const before = readAddress(hops[hops.length - 1 - i])
    if (!before) return { address, isVague: true }
    address = before
  }
  return { address, isVague: false }
}

/** Returns the `for` parameter of an element of Forwarded. */
function forOf(element: string): string {
  for (const pair of splitFromEnd(element, ';')) {
    const value = /^\s*for\s*=\s*(.*)$/i.exec(pair)?.[1]
    if (value !== undefined) return value
  }
  return ''
}

function tail(header: string): string {
  if (header.length <= LONGEST_HEADER) return header
  const cut = header.slice(-LONGEST_HEADER)
  const comma = cut.indexOf(',')
  return comma < 0 ? '' : cut.slice(comma + 1)
}

/**
 * Splits at separators outside quotation marks. It starts at the end, where the nearest proxy has
 * written, so that a client's unbalanced quotation mark cannot hide that part.
 */
function splitFromEnd(text: string, separator: string): string[] {
  const parts: string[] = []
  let isQuoted = false
  let end = text.length
  for (let i = end - 1; i >= 0; i -= 1) {
    if (text[i] === '"' && !isEscaped(text, i)) isQuoted = !isQuoted
    if (text[i] !== separator || isQuoted) continue
    parts.push(text.slice(i + 1, end))
    end = i
  }
  parts.push(text.slice(0, end))
  return parts.reverse()
}

/** Tells whether an odd number of backslashes precedes an index. */
function isEscaped(text: string, at: number): boolean {
  let first = at
  while (first > 0 && text[first - 1] === '\\') first -= 1
  return (at - first) % 2 === 1
}

/**
 * readAddress parses an address as servers and proxies write it: with a port, brackets, quotes or a
 * zone.
 */
export function readAddress(text: string): Address | undefined {
  let bare = text.trim()
  if (bare.startsWith('"') && bare.endsWith('"')) bare = bare.slice(1, -1)
  const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(bare)
  if (bracketed) bare = bracketed[1]
  else if (/^[^:]*:\d{1,5}$/.test(bare)) bare = bare.slice(0, bare.indexOf(':'))
  const zone = bare.indexOf('%')
  return parseAddress(zone < 0 ? bare : bare.slice(0, zone))
}
