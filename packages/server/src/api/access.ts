import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { BlockList, isIPv6 } from 'node:net'
import type { Problem } from '../problem.ts'
import type { AdminSettings } from '../settings.ts'

/** Access is what a caller may do: ask for decisions, look, or change everything. */
export type Access = 'check' | 'read' | 'full'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

const digest = (text: string) => createHash('sha256').update(text).digest()

/**
 * createAccess tells whether a caller may do something, as a problem if not. Decisions are for the
 * machine itself and whoever has a token; everything else needs a token, of full access to change
 * something. Without tokens everything is for the machine itself.
 */
export function createAccess(): (
  request: IncomingMessage,
  wanted: Access,
  admin: AdminSettings,
) => Problem | undefined {
  return (request, wanted, { tokens }) => {
    const given = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1]
    if (given !== undefined && tokens.length > 0) {
      const hash = digest(given)
      // All are compared, so that time does not tell which one was nearly right.
      const known = tokens.filter(({ token }) => timingSafeEqual(digest(token), hash))
      if (known.length === 0) return unauthorized('The token is not known.')
      const isEnough = wanted !== 'full' || known.some(({ access }) => access === 'full')
      return isEnough ? undefined : forbidden('The token may look, and change nothing.')
    }
    const isNear = isLocal(request)
    if (isNear && (wanted === 'check' || tokens.length === 0)) return undefined
    if (tokens.length > 0) return unauthorized('Send a token: Authorization: Bearer TOKEN.')
    return forbidden('Without a configured token this answers only to the machine itself.')
  }
}

/** A page that has its name point at this machine has that name in Host. */
function isLocal({ socket, headers }: IncomingMessage): boolean {
  const address = (socket.remoteAddress ?? '').replace(/^::ffff:/, '')
  const family = isIPv6(address) ? 'ipv6' : 'ipv4'
  if (address === '' || !loopback.check(address, family)) return false
  return /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i.test(headers.host ?? '')
}

function unauthorized(detail: string): Problem {
  return { status: 401, title: 'Unauthorized', detail }
}

function forbidden(detail: string): Problem {
  return { status: 403, title: 'Forbidden', detail }
}
