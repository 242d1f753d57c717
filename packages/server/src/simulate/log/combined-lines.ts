import { SluiceError } from 'sluice'
import { type PathNeed, requestLine } from './http-request.ts'
import { createCombinedTimeReader } from './read-time.ts'
import { type LineReader, NO_DETAILS, requestOf } from './request.ts'

/** What can identify a client. */
const COMBINED_KEYS = ['address', 'user'] as const

const TIME_LENGTH = '16/Nov/2026:18:00:00 +0000'.length

/**
 * createCombinedReader reads access logs of nginx and Apache, common or combined: `ADDRESS - USER
 * [TIME] "REQUEST" STATUS BYTES …`. It ignores what follows the request, and also the request
 * unless paths are needed. With the key `user`, the address replaces a user that is `-`.
 */
export function createCombinedReader(key?: string, paths: PathNeed = 'unwanted'): LineReader {
  if (key !== undefined && !(COMBINED_KEYS as readonly string[]).includes(key)) {
    throw new SluiceError(
      'SLUICE_OPTION',
      `--key must be ${COMBINED_KEYS.join(' or ')}, got ${JSON.stringify(key)}.`,
    )
  }
  const readTime = createCombinedTimeReader()
  const byUser = key === 'user'
  // The user is the key only with `--key user`.
  const details = { ...NO_DETAILS, isKey: byUser }
  return (line) => {
    const addressEnd = line.indexOf(' ')
    const bracket = line.indexOf(' [', addressEnd)
    if (addressEnd < 1 || bracket < 0) return 'it is not ADDRESS - USER [TIME] …'
    const timeStart = bracket + 2
    const timeEnd = timeStart + TIME_LENGTH
    if (line[timeEnd] !== ']') return 'the time cannot be read'
    const timeUs = readTime(line.slice(timeStart, timeEnd))
    let name = line.slice(0, addressEnd)
    if (byUser) {
      const user = line.slice(line.indexOf(' ', addressEnd + 1) + 1, bracket)
      if (user !== '-' && user !== '') name = user
    }
    if (paths === 'unwanted') return requestOf(timeUs, name, 1, details)
    const text = quoted(line, timeEnd + 1)
    if (text === undefined) {
      if (paths === 'required') return 'no request in quotes follows the time'
      return requestOf(timeUs, name, 1, details)
    }
    const http = { ...requestLine(text), host: undefined }
    return requestOf(timeUs, name, 1, { ...details, http })
  }
}

/** The text in double quotes from a position on, without the escapes of nginx and Apache. */
function quoted(line: string, from: number): string | undefined {
  REQUEST.lastIndex = from
  const text = REQUEST.exec(line)?.[1]
  if (!text?.includes('\\')) return text
  return text.replace(ESCAPE, (_, code, sign) =>
    code === undefined ? sign : String.fromCharCode(Number.parseInt(code, 16)),
  )
}

const REQUEST = / "((?:[^"\\]|\\.)*)"/y
const ESCAPE = /\\(?:x([\da-f]{2})|(["\\]))/gi
