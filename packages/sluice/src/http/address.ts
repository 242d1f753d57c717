/**
 * Address is an IP address as the 16-bit groups of IPv6. IPv4 addresses are in the block
 * ::ffff:0:0/96 of mapped addresses, so that both spellings of a client are equal.
 */
export type Address = readonly number[]

const GROUPS = 8

/** The longest text of an address: 8 groups, the last two dotted, a zone aside. */
const LONGEST = 45

/**
 * parseAddress parses an IPv4 or IPv6 address without brackets, port or zone; undefined if it is
 * invalid.
 */
export function parseAddress(text: string): Address | undefined {
  if (text.length === 0 || text.length > LONGEST) return undefined
  if (!text.includes(':')) {
    const dotted = parseDotted(text)
    return dotted && [0, 0, 0, 0, 0, 0xffff, ...dotted]
  }
  return parseGroups(text)
}

/** Parses four decimal numbers without leading zeros, which some parsers read as octal. */
function parseDotted(text: string): number[] | undefined {
  const parts = text.split('.')
  if (parts.length !== 4) return undefined
  const bytes: number[] = []
  for (const part of parts) {
    if (!/^(0|[1-9]\d{0,2})$/.test(part) || Number(part) > 255) return undefined
    bytes.push(Number(part))
  }
  return [bytes[0] * 256 + bytes[1], bytes[2] * 256 + bytes[3]]
}

function parseGroups(text: string): Address | undefined {
  const [start, end, ...more] = text.split('::')
  if (more.length > 0) return undefined
  const head = groupsOf(start, end === undefined)
  if (end === undefined) return head?.length === GROUPS ? head : undefined
  const tail = groupsOf(end, true)
  if (!head || !tail || head.length + tail.length >= GROUPS) return undefined
  const zeros = Array<number>(GROUPS - head.length - tail.length).fill(0)
  return [...head, ...zeros, ...tail]
}

/** Parses groups separated by colons. The end of an address may be in dotted form. */
function groupsOf(half: string, isEnd: boolean): number[] | undefined {
  if (half === '') return []
  const groups: number[] = []
  const parts = half.split(':')
  for (const [i, part] of parts.entries()) {
    const dotted = isEnd && i === parts.length - 1 ? parseDotted(part) : undefined
    if (dotted) groups.push(...dotted)
    else if (/^[0-9a-f]{1,4}$/i.test(part)) groups.push(Number.parseInt(part, 16))
    else return undefined
  }
  return groups
}

/** Tells whether it is an IPv4 address. */
function isV4(address: Address): boolean {
  return address[5] === 0xffff && address.slice(0, 5).every((group) => group === 0)
}

/**
 * addressText returns the canonical text of an address, or of the network of its first `bits` bits
 * for IPv6: `'192.0.2.1'`, `'2001:db8:0:7::/64'`. Zeros are not shortened otherwise.
 */
export function addressText(address: Address, bits: number): string {
  if (isV4(address)) {
    const [high, low] = address.slice(6)
    return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
  }
  const groups = address.map((group, i) => group & maskOf(bits - 16 * i))
  const text = groups.map((group) => group.toString(16)).join(':')
  return bits === 128 ? text : `${text}/${bits}`
}

/** Returns a mask of the first `bits` bits of a group. */
function maskOf(bits: number): number {
  if (bits <= 0) return 0
  return bits >= 16 ? 0xffff : (0xffff << (16 - bits)) & 0xffff
}

/** AddressSet is a set of addresses and CIDR blocks. */
export interface AddressSet {
  has(address: Address): boolean
}

/**
 * parseBlock parses `'10.0.0.0/8'`, `'2001:db8::/32'` or a single address; undefined if it is
 * invalid.
 */
export function parseBlock(text: string): AddressSet | undefined {
  const [start, length, ...rest] = text.split('/')
  const address = parseAddress(start)
  if (!address || rest.length > 0) return undefined
  const offset = isV4(address) && !start.includes(':') ? 96 : 0
  const most = 128 - offset
  if (length !== undefined && !/^(0|[1-9]\d{0,2})$/.test(length)) return undefined
  const bits = length === undefined ? most : Number(length)
  if (bits > most) return undefined
  // A mapped address with fewer bits than its prefix would be all of IPv4, and more.
  if (offset === 0 && bits < 96 && isV4(address)) return undefined
  const masks = address.map((_, i) => maskOf(bits + offset - 16 * i))
  return {
    has: (other) => masks.every((mask, i) => ((address[i] ^ other[i]) & mask) === 0),
  }
}
