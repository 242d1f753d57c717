import { SluiceError } from '../core/errors.ts'
import { type Address, addressText } from './address.ts'
import { type AddressSource, clientAddress, type Found, type Trust } from './client-address.ts'
import { warnOfProxies } from './framework.ts'

/** Located is a client whose address is known. */
export type Located = Found & { readonly address: Address }

/** The address of nobody, `::`. */
const NOBODY: Address = [0, 0, 0, 0, 0, 0, 0, 0]

/**
 * located is a client whose address is known. Where a client has made its address unreadable and there
 * is no connection to count it by, it counts with all others who do so. Throws where nothing tells an
 * address: adapters drop what comes on a connection that has gone, so it is the set-up that tells none.
 */
export function located(client: Found): Located {
  const address = client.address ?? (client.isVague ? NOBODY : undefined)
  if (address) return { ...client, address }
  throw new SluiceError(
    'SLUICE_OPTION',
    'rateLimit: the address of this request is not known. Give `key`, or `trustProxy: 1` if a proxy of ' +
      'yours writes X-Forwarded-For; in sluice/fetch and sluice/hono, `address` can tell it, too.',
  )
}

/** How many texts of addresses are kept at hand. */
const MOST_TEXTS = 10_000

/** Locator finds the addresses of clients. */
export interface Locator {
  locate(source: AddressSource): Located
  /** The text that a client is counted by; those of the last ones are kept at hand. */
  text(source: AddressSource): string
}

/**
 * createLocator finds clients by way of proxies that are trusted. Where `isTold` is false nobody said
 * which those are, and it warns if the framework trusts any.
 */
export function createLocator(trust: Trust, ipv6Bits: number, isTold: boolean): Locator {
  const texts = new Map<string, string>()
  let isChecked = isTold

  function check({ frameworkTrust }: AddressSource): void {
    isChecked = true
    if (frameworkTrust !== undefined) warnOfProxies(frameworkTrust)
  }

  function locate(source: AddressSource): Located {
    // The first request comes after the app is set up.
    if (!isChecked) check(source)
    return located(clientAddress(source, trust))
  }

  return {
    locate,
    text(source) {
      const { peer } = source
      const isPeer = trust === 0 && typeof peer === 'string'
      const known = isPeer ? texts.get(peer) : undefined
      if (known !== undefined) return known
      const text = addressText(locate(source).address, ipv6Bits)
      if (isPeer) {
        if (texts.size >= MOST_TEXTS) texts.clear()
        texts.set(peer, text)
      }
      return text
    },
  }
}
