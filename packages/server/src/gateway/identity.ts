import type { IncomingMessage } from 'node:http'
import type { RouteSettings } from '../settings.ts'

/** identityHeaders are the names of the headers that the key of a route is read from. */
export function identityHeaders({ key, isOpen }: RouteSettings, tokenHeader = ''): string[] {
  if (isOpen) return []
  const names = key.map((part) => {
    if ('name' in part) return part.name
    return part.from === 'jwt' ? tokenHeader : ''
  })
  return names.filter((name) => name !== '')
}

/**
 * unclearHeader is one of these headers that the upstream may read otherwise than it was counted:
 * it came twice, or is spelt with `_`, which is the same name to CGI, or Connection names it, so
 * that it is not passed on. Undefined if there is none.
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
    const came = rawHeaders[i].toLowerCase()
    if (came === name) count += 1
    else if (came.replaceAll('_', '-') === plain) return true
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
 * headerReadings are the values that servers may take for a header: each that came, also under the
 * name that CGI takes for the same, and all of them in one.
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
 * plainSecret is a secret as it is hashed. The scheme of an `Authorization` may be spelt in any
 * case, with any space behind it; here it is `Bearer`, and one space. `Basic` has many spellings of
 * one name and password, and is encoded anew. Undefined for what servers read in different ways: of
 * `Bearer abc 1` and `Bearer abc 2` some take `abc`, and each would have a limit of its own.
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
