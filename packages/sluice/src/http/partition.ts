import { SluiceError, shown } from '../core/errors.ts'
import { usableKey } from '../core/usable-key.ts'

/** The longest partition key, in UTF-16 units: as a key of a limiter. */
const LONGEST = 1_024

const encoder = new TextEncoder()

/**
 * partitionOf is the parameter `pk` of a partition key: its UTF-8 bytes as a Byte Sequence of
 * RFC 9651; '' where there is none. What a client may have made up is never an error: a longer
 * text, an array or a plain object stands as the key that it would be counted by.
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
