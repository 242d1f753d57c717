import type { IncomingMessage } from 'node:http'
import type { RouteSettings } from '../settings.ts'

/** identityHeaders are the names of the headers from which the key of a route is read. */
export function identityHeaders({ key, isOpen }: RouteSettings, tokenHeader = ''): string[] {
  if (isOpen) return []
  const names = key.map((part) => {
    if ('name' in part) return part.name
    return part.from === 'jwt' ? tokenHeader : ''
  })
  return names.filter((name) => name !== '')
}

/**
 * unclearHeader returns an identity header that the upstream may read differently: it is sent
 * twice, is spelt with `_`, which CGI reads as `-`, or is listed in Connection, so that it is not
 * passed on. Undefined if there is none.
 */
export function unclearHeader(
  { rawHeaders, headers }: IncomingMessage,
  names: readonly string[],
): string | undefined {
  return names.find((name) => isTwofold(rawHeaders, name) || isNamed(headers.connection, name))
}

function isTwofold(rawHeaders: readonly string[], name: string): boolean {
  const plain = name.replaceAll('_', '-')
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i].length !== name.length) continue
    const sent = rawHeaders[i].toLowerCase()
    if (sent === name) count += 1
    else if (sent.replaceAll('_', '-') === plain) return true
  }
  return count > 1
}

function isNamed(connection: string | undefined, name: string): boolean {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close')
    return false
  return connection
    .toLowerCase()
    .split(',')
    .some((each) => each.trim() === name)
}

/**
 * headerReadings are the values that a server may read for a header: each value that was sent, also
 * under a name that CGI reads as the same, and all of them joined.
 */
export function headerReadings(
  { rawHeaders, headers }: IncomingMessage,
  name: string,
): readonly string[] {
  const plain = name.replaceAll('_', '-')
  const values: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i].length !== name.length) continue
    if (rawHeaders[i].toLowerCase().replaceAll('_', '-') === plain) values.push(rawHeaders[i + 1])
  }
  if (values.length > 1) values.push([headers[name]].flat().join(', '))
  return values
}

/**
 * plainSecret normalizes a secret before it is hashed. The scheme of an `Authorization` may be in
 * any case, with any space after it; the result has `Bearer` and one space. `Basic` allows several
 * encodings of the same credentials, and is encoded again. Undefined for values that servers parse
 * differently: some read `Bearer abc 1` and `Bearer abc 2` as `abc`, so each would get its own
 * limit.
 */
export function plainSecret(secret: string): string | undefined {
  const [, scheme, rest] = /^([a-z][\w-]*)\s+(\S.*)$/is.exec(secret) ?? []
  if (scheme === undefined) return /^[^!-~]|[^!-~]$/.test(secret) ? undefined : secret
  const name = `${scheme[0].toUpperCase()}${scheme.slice(1).toLowerCase()}`
  const text = rest.trimEnd()
  if (name !== 'Basic') {
    return /^(?=[!-~]+$)[^,;="]+=*$/.test(text) ? `${name} ${text}` : undefined
  }
  if (!/^[a-z\d+/_-]+=*$/i.test(text)) return undefined
  return `Basic ${Buffer.from(text, 'base64').toString('base64')}`
}
