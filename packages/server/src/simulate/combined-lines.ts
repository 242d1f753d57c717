import { SluiceError } from 'sluice'
import { createCombinedTimeReader } from './read-time.ts'
import { type LineReader, requestOf } from './request.ts'

/** What a client may be known by. */
const COMBINED_KEYS = ['address', 'user'] as const

const TIME_LENGTH = '16/Nov/2026:18:00:00 +0000'.length

/**
 * createCombinedReader reads access logs of nginx and Apache, common or combined:
 * `ADDRESS - USER [TIME] "REQUEST" STATUS BYTES …`. What follows the time is not looked at. With
 * the key `user`, the address stands in for a user that is `-`.
 */
export function createCombinedReader(key = 'address'): LineReader {
  if (!(COMBINED_KEYS as readonly string[]).includes(key)) {
    throw new SluiceError(
      'SLUICE_OPTION',
      `--key must be ${COMBINED_KEYS.join(' or ')}, got ${JSON.stringify(key)}.`,
    )
  }
  const readTime = createCombinedTimeReader()
  const byUser = key === 'user'
  return (line) => {
    const addressEnd = line.indexOf(' ')
    const bracket = line.indexOf(' [', addressEnd)
    if (addressEnd < 1 || bracket < 0) return 'it is not ADDRESS - USER [TIME] …'
    const timeStart = bracket + 2
    if (line[timeStart + TIME_LENGTH] !== ']') return 'the time cannot be read'
    const timeUs = readTime(line.slice(timeStart, timeStart + TIME_LENGTH))
    let name = line.slice(0, addressEnd)
    if (byUser) {
      const user = line.slice(line.indexOf(' ', addressEnd + 1) + 1, bracket)
      if (user !== '-' && user !== '') name = user
    }
    return requestOf(timeUs, name)
  }
}
