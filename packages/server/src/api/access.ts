import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { type Problem, problem } from '../problem.ts'
import type { AdminSettings } from '../settings.ts'

/** Access is what a caller may do: request decisions, read state, or change everything. */
export type Access = 'check' | 'read' | 'full'

const digest = (text: string) => createHash('sha256').update(text).digest()

/**
 * forbids returns why a caller has no access, or undefined if it has. Decisions need a local caller
 * or a token; everything else needs a token, with full access for changes. Without configured
 * tokens, local callers have full access and others have none.
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
    // Compares with all tokens, so that the time taken reveals nothing.
    const known = tokens.filter(({ token }) => timingSafeEqual(digest(token), hash))
    if (known.length === 0) return problem(401, 'The token is unknown.')
    const isEnough = wanted !== 'full' || known.some(({ access }) => access === 'full')
    return isEnough ? undefined : problem(403, 'The token has read access only.')
  }
  if (tokens.length > 0)
    return problem(401, 'Send a token, as Authorization: Bearer TOKEN or X-Sluice-Token: TOKEN.')
  return problem(403, 'The API accepts calls from its own machine only.')
}

/** A proxy may pass on its client's Authorization, so callers can use a header of their own. */
function tokenOf({ headers }: IncomingMessage): string | undefined {
  const own = headers['x-sluice-token']
  if (typeof own === 'string') return own
  return /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1]
}

/**
 * Whether the caller is on this machine and is no foreign web page in a local browser: such a page
 * sends its Origin or Sec-Fetch-Site, or a Host that resolves to this machine (DNS rebinding). The
 * service's own pages have access.
 */
function isLocal({ socket, headers }: IncomingMessage, wanted: Access): boolean {
  const { origin, host = '' } = headers
  const address = socket.remoteAddress ?? ''
  if (!/^(127\.|::ffff:127\.|::1$)/.test(address)) return false
  if (!/^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i.test(host)) return false
  // A forward-auth proxy passes on headers of its client. A web page cannot send these headers
  // without a preflight, which is never allowed.
  if (wanted === 'check' && ASKED_FOR.some((name) => name in headers)) return true
  // A request that came through a proxy is not local.
  if (wanted !== 'check' && PROXIED.some((name) => name in headers)) return false
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false
  return origin === undefined || origin === `http://${host}` || origin === `https://${host}`
}

const ASKED_FOR = ['x-forwarded-uri', 'x-original-uri', 'x-original-url']
const PROXIED = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip']
