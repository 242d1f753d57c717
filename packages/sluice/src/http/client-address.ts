import { type Address, type AddressSet, parseAddress } from './address.ts'

/** What a client's address is found from. */
export interface AddressSource {
  /** The other end of the connection; undefined where nobody knows. */
  readonly peer: string | undefined
  header(name: string): string | undefined
  /** The address that the framework has found by its own setting for proxies, where it has one. */
  readonly frameworkIp?: string
  /** What that setting is called, if it trusts any proxy. */
  readonly frameworkTrust?: string
}

/**
 * Trust says which proxies are believed when they tell whom they speak for: so many, those in certain
 * networks, or those that the framework believes. Any other header is what a client made up.
 */
export type Trust = number | 'framework' | AddressSet

/** Longer chains than this are cut: nobody has so many proxies. */
const MOST_HOPS = 64

/** The longest header that is looked at, from its end. */
const LONGEST_HEADER = 4_096

/** Found is a client's address as far as it can be told. */
export interface Found {
  readonly address: Address | undefined
  /** Whether the address is a proxy's, which spoke for somebody whom it did not name. */
  readonly isVague: boolean
  /** Who it may be all the same. */
  readonly others?: readonly Address[]
}

/**
 * clientAddress goes from the connection back through the proxies that are trusted, and gives the
 * first address that is not one of them. Where a trusted proxy wrote something that is no address,
 * that is as far as anybody can see: the proxy's own address counts. So it does where there are
 * both kinds of header and they name different clients, since a proxy writes one of them and the
 * client can write the other.
 */
export function clientAddress(source: AddressSource, trust: Trust): Found {
  const peer = typeof source.peer === 'string' ? readAddress(source.peer) : undefined
  if (trust === 'framework') {
    // Express and Koa pass on whatever text is in the header.
    const address = readAddress(source.frameworkIp ?? '')
    return { address: address ?? peer, isVague: !address && Boolean(peer ?? source.frameworkIp) }
  }
  // Behind a platform's own proxy nobody knows the connection, only how many proxies there are.
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

/** Goes back through what proxies have written down, the last one written at the end. */
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

/** For whom an element of Forwarded says that it speaks. */
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
 * Splits at a separator that is not between quotation marks. It goes from the end, where the
 * nearest proxy has written, so that no quotation mark of a client can swallow that.
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

/** Tells whether an odd number of backslashes comes before a place. */
function isEscaped(text: string, at: number): boolean {
  let first = at
  while (first > 0 && text[first - 1] === '\\') first -= 1
  return (at - first) % 2 === 1
}

/** Reads an address as servers and proxies write it: with a port, brackets, quotes or a zone. */
export function readAddress(text: string): Address | undefined {
  let bare = text.trim()
  if (bare.startsWith('"') && bare.endsWith('"')) bare = bare.slice(1, -1)
  const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(bare)
  if (bracketed) bare = bracketed[1]
  else if (/^[^:]*:\d{1,5}$/.test(bare)) bare = bare.slice(0, bare.indexOf(':'))
  const zone = bare.indexOf('%')
  return parseAddress(zone < 0 ? bare : bare.slice(0, zone))
}
