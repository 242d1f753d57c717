import { SluiceError } from '../core/errors.ts'
import { type Address, addressText } from './address.ts'
import { type AddressSource, clientAddress, type Found, type Trust } from './client-address.ts'
import { warnOfProxies } from './framework.ts'

/** Located is a client whose address is known. */
export type Located = Found & { readonly address: Address }

/** The unspecified address `::`, under which clients with unreadable addresses count. */
const UNSPECIFIED: Address = [0, 0, 0, 0, 0, 0, 0, 0]

/**
 * located returns a client whose address is known. Clients with an unreadable address and no
 * connection address count together. Throws if there is no address data at all: adapters drop
 * requests of closed connections, so the configuration must be the reason.
 */
export function located(client: Found): Located {
  const address = client.address ?? (client.isVague ? UNSPECIFIED : undefined)
  if (address) return { ...client, address }
  throw new SluiceError(
    'SLUICE_OPTION',
    'rateLimit: the address of this request is not known. Give `key`, or `trustProxy: 1` if a proxy of ' +
      'yours writes X-Forwarded-For; in sluice/fetch and sluice/hono, `address` can tell it, too.',
  )
}

/** The most cached texts of addresses. */
const MOST_TEXTS = 10_000

/** Locator finds the addresses of clients. */
export interface Locator {
  locate(source: AddressSource): Located
  /** Returns the text by which a client is counted. The last ones are cached. */
  text(source: AddressSource): string
}

/**
 * createLocator finds clients behind trusted proxies. If `isTold` is false, `trustProxy` is not
 * set, and it warns if the framework trusts any proxy.
 */
export function createLocator(trust: Trust, ipv6Bits: number, isTold: boolean): Locator {
  const texts = new Map<string, string>()
  let isChecked = isTold

  function check({ frameworkTrust }: AddressSource): void {
    isChecked = true
    if (frameworkTrust !== undefined) warnOfProxies(frameworkTrust)
  }

  function locate(source: AddressSource): Located {
    // Check at the first request, when the app is configured.
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
