import { type Address, type AddressSet, parseAddress } from './address.ts'

/** What a client's address is found from. */
export interface AddressSource {
  /** The other end of the connection; undefined where nobody knows. */
  readonly peer: string | undefined
  header(name: string): string | undefined
}

/**
 * Trust says which proxies are believed when they tell whom they speak for: so many, or those in
 * certain networks. A header that comes from anybody else is what a client made up.
 */
export type Trust = number | AddressSet

/** Longer chains than this are cut: nobody has so many proxies. */
const MOST_HOPS = 64

/** The longest header that is looked at, from its end. */
const LONGEST_HEADER = 4_096

/**
 * clientAddress goes from the connection back through the proxies that are trusted, and gives the
 * first address that is not one of them. Where a trusted proxy wrote something that is no address,
 * that is as far as anybody can see: the proxy's own address counts.
 */
export function clientAddress(source: AddressSource, trust: Trust): Address | undefined {
  let address = source.peer === undefined ? undefined : readAddress(source.peer)
  // Behind a platform's own proxy nobody knows the connection, only how many proxies there are.
  const isHidden = source.peer === undefined && typeof trust === 'number'
  if ((!address && !isHidden) || trust === 0) return address
  const hops = chainOf(source)
  for (let i = 0; i < hops.length && i < MOST_HOPS; i += 1) {
    if (typeof trust === 'number' ? i >= trust : !address || !trust.has(address)) break
    const before = readAddress(hops[hops.length - 1 - i])
    if (!before) break
    address = before
  }
  return address
}

/** The addresses that proxies have written down, the last one written at the end. */
function chainOf(source: AddressSource): string[] {
  const list = source.header('x-forwarded-for')
  if (list !== undefined) return tail(list).split(',')
  const forwarded = source.header('forwarded')
  if (forwarded === undefined) return []
  return splitUnquoted(tail(forwarded), ',').map(
    (element) =>
      splitUnquoted(element, ';')
        .map((pair) => /^\s*for\s*=\s*(.*)$/i.exec(pair)?.[1])
        .find((value) => value !== undefined) ?? '',
  )
}

function tail(header: string): string {
  if (header.length <= LONGEST_HEADER) return header
  const cut = header.slice(-LONGEST_HEADER)
  const comma = cut.indexOf(',')
  return comma < 0 ? '' : cut.slice(comma + 1)
}

/** Splits at a separator that is not between quotation marks. */
function splitUnquoted(text: string, separator: string): string[] {
  const parts = ['']
  let isQuoted = false
  for (const character of text) {
    if (character === '"') isQuoted = !isQuoted
    if (character === separator && !isQuoted) parts.push('')
    else parts[parts.length - 1] += character
  }
  return parts
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
