import { SluiceError } from '../core/errors.ts'
import { type Address, addressText } from './address.ts'
import { type AddressSource, clientAddress, type Found, type Trust } from './client-address.ts'

/** Located is a client whose address is known. */
export type Located = Found & { readonly address: Address }

/**
 * located is a client whose address is known, and throws without one: no decision is made for it.
 * Adapters drop what comes on a connection that has gone, so it is the set-up that tells none.
 */
export function located(client: Found): Located {
  const { address } = client
  if (address) return { ...client, address }
  throw new SluiceError(
    'SLUICE_OPTION',
    'rateLimit: the address of this request is not known. Give `key`, `address`, or `trustProxy` ' +
      'if a proxy of yours writes X-Forwarded-For.',
  )
}

/** How many texts of addresses are kept at hand. */
const MOST_TEXTS = 10_000

/** addressTexts gives the texts that clients are counted by; those of the last ones are kept at hand. */
export function addressTexts(trust: Trust, ipv6Bits: number): (source: AddressSource) => string {
  const texts = new Map<string, string>()
  return (source) => {
    const { peer } = source
    const isPeer = trust === 0 && typeof peer === 'string'
    const known = isPeer ? texts.get(peer) : undefined
    if (known !== undefined) return known
    const text = addressText(located(clientAddress(source, trust)).address, ipv6Bits)
    if (isPeer) {
      if (texts.size >= MOST_TEXTS) texts.clear()
      texts.set(peer, text)
    }
    return text
  }
}
