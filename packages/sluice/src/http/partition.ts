import { SluiceError, shown } from '../core/errors.ts'
import { usableKey } from '../core/usable-key.ts'

/** The longest partition key, in UTF-16 units, as for keys of a limiter. */
const LONGEST = 1_024

const encoder = new TextEncoder()

/**
 * partitionOf returns the parameter `pk` of a partition key: its UTF-8 bytes as a Byte Sequence of
 * RFC 9651; '' without a key. No value from a client is an error: an over-long string, an array or a
 * plain object is replaced by the key that it would count as.
 */
export function partitionOf(key: unknown): string {
  if (key === undefined || key === null) return ''
  const text = typeof key === 'string' && key.length <= LONGEST ? key : hashed(key)
  return `;pk=:${btoa(String.fromCharCode(...encoder.encode(text)))}:`
}

function hashed(key: unknown): string {
  if (typeof key === 'string' || typeof key === 'object') return usableKey(key)
  throw new SluiceError(
    'SLUICE_OPTION',
    `rateLimit: partitionKey must give a string or undefined, got ${shown(key)}.`,
  )
}
