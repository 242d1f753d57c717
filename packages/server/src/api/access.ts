import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { type Problem, problem } from '../problem.ts'
import type { AdminSettings } from '../settings.ts'

/** Access is what a caller may do: ask for decisions, look, or change everything. */
export type Access = 'check' | 'read' | 'full'

const digest = (text: string) => createHash('sha256').update(text).digest()

/**
 * forbids tells why a caller may not do something, or undefined if it may. Decisions are for the
 * machine itself and whoever has a token; everything else needs a token, of full access to change
 * something. Without tokens everything is for the machine itself.
 */
export function forbids(
  request: IncomingMessage,
  wanted: Access,
  { tokens }: AdminSettings,
): Problem | undefined {
  const isNear = isLocal(request, wanted)
  if (isNear && (wanted === 'check' || tokens.length === 0)) return undefined
  const given = tokenOf(request)
  if (given !== undefined && tokens.length > 0) {
    const hash = digest(given)
    // All are compared, so that time does not tell which one was nearly right.
    const known = tokens.filter(({ token }) => timingSafeEqual(digest(token), hash))
    if (known.length === 0) return problem(401, 'The token is not known.')
    const isEnough = wanted !== 'full' || known.some(({ access }) => access === 'full')
    return isEnough ? undefined : problem(403, 'The token may look, and change nothing.')
  }
  if (tokens.length > 0)
    return problem(401, 'Send a token, as Authorization: Bearer TOKEN or X-Sluice-Token: TOKEN.')
  return problem(403, 'Without a configured token this answers only to the machine itself.')
}

/** A proxy that asks passes its client's Authorization on, so there is a field for ours alone. */
function tokenOf({ headers }: IncomingMessage): string | undefined {
  const own = headers['x-sluice-token']
  if (typeof own === 'string') return own
  return /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1]
}

/**
 * Whether the machine itself asks, and no page of somebody else in a browser here: that names its
 * origin, or its site, or in Host the name that points at us. Pages of our own may ask.
 */
function isLocal({ socket, headers }: IncomingMessage, wanted: Access): boolean {
  const { origin, host = '' } = headers
  const address = socket.remoteAddress ?? ''
  if (!/^(127\.|::ffff:127\.|::1$)/.test(address)) return false
  if (!/^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i.test(host)) return false
  // A proxy that asks for a decision passes on what its client says of itself. A page cannot send
  // these fields without asking first, which is never allowed.
  if (wanted === 'check' && ASKED_FOR.some((name) => name in headers)) return true
  // What came through a proxy was not asked by the machine itself.
  if (wanted !== 'check' && PROXIED.some((name) => name in headers)) return false
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false
  return origin === undefined || origin === `http://${host}` || origin === `https://${host}`
}

const ASKED_FOR = ['x-forwarded-uri', 'x-original-uri', 'x-original-url']
const PROXIED = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip']
