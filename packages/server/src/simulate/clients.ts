/** Clients numbers keys from 0 on, in the order in which they come. */
export interface Clients {
  /** The number of a key; -1 for a new one when there is no room for more. */
  numberOf(key: string): number
  keyOf(number: number): string
  size(): number
}

/** createClients keeps up to `maxClients` keys. */
export function createClients(maxClients: number): Clients {
  const numbers = new Map<string, number>()
  const keys: string[] = []
  return {
    numberOf(key) {
      const found = numbers.get(key)
      if (found !== undefined) return found
      if (keys.length >= maxClients) return -1
      const own = ownCopy(key)
      numbers.set(own, keys.length)
      keys.push(own)
      return keys.length - 1
    },
    keyOf: (number) => keys[number],
    size: () => keys.length,
  }
}

/** A slice would keep alive the whole block that it was cut from. */
function ownCopy(key: string): string {
  const encoding = Buffer.byteLength(key) === key.length ? 'latin1' : 'utf16le'
  return Buffer.from(key, encoding).toString(encoding)
}
