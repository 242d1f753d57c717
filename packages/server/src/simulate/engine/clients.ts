import { randomInt } from 'node:crypto'

/** Clients numbers keys from 0 on, in the order of their first requests. */
export interface Clients {
  /** The number of a key; -1 for a new key when the table is full. */
  numberOf(key: string): number
  keyOf(number: number): string
  size(): number
}

/** Units of a page; a key is at most 1,024, and never lies across two pages. */
const PAGE_BITS = 20
const PAGE_UNITS = 2 ** PAGE_BITS

/**
 * createClients keeps up to `maxClients` keys. It is a hash table in typed arrays, with about 50
 * bytes for a short key; a `Map` of strings takes three times as much.
 */
export function createClients(maxClients: number): Clients {
  /** The keys one after the other, each after its length. */
  const pages: Uint16Array[] = []
  let free = PAGE_UNITS
  /** Where each key begins, and its hash. */
  let starts = new Uint32Array(1_024)
  let hashes = new Int32Array(1_024)
  /** Client number plus 1 in each slot; 0 for an empty slot. The load factor is at most 1/2. */
  let slots = new Uint32Array(2_048)
  let size = 0
  // A random hash seed, so that a crafted log cannot cause collisions (hash flooding).
  const secret = randomInt(2 ** 32)

  function hashOf(key: string): number {
    let hash = secret ^ key.length
    for (let i = 0; i < key.length; i += 1) {
      hash = Math.imul(hash ^ key.charCodeAt(i), 0x5bd1e995)
      hash ^= hash >>> 15
    }
    return hash
  }

  function isKey(number: number, key: string): boolean {
    const start = starts[number]
    const page = pages[start >>> PAGE_BITS]
    const at = start & (PAGE_UNITS - 1)
    if (page[at] !== key.length) return false
    for (let i = 0; i < key.length; i += 1) {
      if (page[at + 1 + i] !== key.charCodeAt(i)) return false
    }
    return true
  }

  function grow(): void {
    starts = copied(starts, new Uint32Array(2 * starts.length))
    hashes = copied(hashes, new Int32Array(starts.length))
    slots = new Uint32Array(2 * slots.length)
    for (let number = 0; number < size; number += 1) slots[freeSlot(hashes[number])] = number + 1
  }

  function freeSlot(hash: number): number {
    const mask = slots.length - 1
    let slot = hash & mask
    while (slots[slot] !== 0) slot = (slot + 1) & mask
    return slot
  }

  function add(key: string, hash: number): number {
    if (size === starts.length) grow()
    if (free + key.length >= PAGE_UNITS) {
      pages.push(new Uint16Array(PAGE_UNITS))
      free = 0
    }
    const page = pages[pages.length - 1]
    starts[size] = (pages.length - 1) * PAGE_UNITS + free
    page[free] = key.length
    for (let i = 0; i < key.length; i += 1) page[free + 1 + i] = key.charCodeAt(i)
    free += key.length + 1
    hashes[size] = hash
    slots[freeSlot(hash)] = size + 1
    size += 1
    return size - 1
  }

  return {
    numberOf(key) {
      const hash = hashOf(key)
      const mask = slots.length - 1
      for (let slot = hash & mask; slots[slot] !== 0; slot = (slot + 1) & mask) {
        const number = slots[slot] - 1
        if (hashes[number] === hash && isKey(number, key)) return number
      }
      return size < maxClients ? add(key, hash) : -1
    },
    keyOf(number) {
      const page = pages[starts[number] >>> PAGE_BITS]
      const at = (starts[number] & (PAGE_UNITS - 1)) + 1
      return String.fromCharCode(...page.subarray(at, at + page[at - 1]))
    },
    size: () => size,
  }
}

function copied<T extends Uint32Array | Int32Array>(from: T, to: T): T {
  to.set(from)
  return to
}
