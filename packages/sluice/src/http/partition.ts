import { SluiceError, shown } from '../core/errors.ts'

/** The longest partition key, in UTF-16 units: as a key of a limiter. */
const LONGEST = 1_024

const encoder = new TextEncoder()

/**
 * partitionOf is the parameter `pk` of a partition key: its UTF-8 bytes as a Byte Sequence of
 * RFC 9651; '' where there is none.
 */
export function partitionOf(key: string | undefined): string {
  if (key === undefined) return ''
  if (typeof key !== 'string' || key.length > LONGEST) {
    throw new SluiceError(
      'SLUICE_OPTION',
      `rateLimit: partitionKey must give a string of at most ${LONGEST} UTF-16 units, or undefined, ` +
        `got ${typeof key === 'string' ? `one of ${key.length}` : shown(key)}.`,
    )
  }
  return `;pk=:${btoa(String.fromCharCode(...encoder.encode(key)))}:`
}
